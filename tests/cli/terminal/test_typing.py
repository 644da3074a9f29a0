"""Typing at a real terminal while a scripted agent writes, works and asks."""

from __future__ import annotations

import json

import pytest

from quarterdeck.testing import fake
from support.command_line import Quarterdeck

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def delta(text: str) -> fake.Line:
    change = {"type": "text_delta", "text": text}
    event = {"type": "content_block_delta", "index": 0, "delta": change}
    ids: fake.Line = {"session_id": "$session_id", "uuid": "$uuid", "parent_tool_use_id": None}
    return {"type": "stream_event", "event": event} | ids


async def test_what_is_typed_during_a_turn_is_the_next_prompt(quarterdeck: Quarterdeck) -> None:
    # The script waits for each step of the test: an answer to a question is its signal to go on.
    go = fake.can_use_tool("Bash", {"command": "true"})
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(delta("The **first** half,")),
        fake.Wait(1.5),
        fake.say(delta(" the second half.\n\nMore"), go),
        fake.Expect("control_response"),
        fake.say(fake.assistant("The **first** half, the second half.\n\nMore."), fake.result("x")),
        fake.Serve(),
    )
    here = quarterdeck.at_terminal("run", size=(30, 60))
    await here.see(">")
    here.press("begin\n")
    await here.see("The first half,")
    assert "working · " in here.rows
    here.press("my ne")
    await here.see("> my ne")
    here.press("xt")
    rows = await here.see("a question waits: send your text, or clear it with Ctrl-U")
    # The text goes on above, and neither it nor the question takes the keys.
    rows = await here.see("the second half.")
    assert rows.endswith("> my next")
    assert "┌ Permission" not in rows
    here.press(" one\n")
    await here.see("next: my next one")
    await here.see("┌ Permission command: Bash")
    await here.see("\n?")
    here.press("y\n")
    rows = await here.see("echo: my next one")
    assert rows.index("More.") < rows.index("> my next one") < rows.index("echo: my next one")
    here.press("\x04")
    assert await here.end() == 0
    assert rows.count("The first half, the second half.") == 1


@pytest.mark.parametrize("early", ["y\n", "a\n"])
async def test_a_key_in_the_first_moment_of_a_question_is_not_its_answer(
    quarterdeck: Quarterdeck, early: str
) -> None:
    record = quarterdeck.home / "answers"
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.can_use_tool("Read", {"file_path": "/a"})),
        fake.Expect("control_response"),
        fake.say(fake.assistant("over"), fake.result("over")),
        fake.Serve(),
        record=record,
    )
    here = quarterdeck.at_terminal("run", "hello")
    await here.see("s  deny, and stop the turn")
    here.press(early)
    await here.see("\n?")
    here.press("n no\n")
    assert await here.end() == 0
    lines = [json.loads(line) for line in record.read_text().splitlines()[1:]]
    (answer,) = [line["response"] for line in lines if line["type"] == "control_response"]
    assert answer["response"]["behavior"] == "deny"


async def test_a_dumb_terminal_gets_the_text_as_it_is_written(quarterdeck: Quarterdeck) -> None:
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(delta("a **bold** "), delta("word"), fake.assistant("a **bold** word")),
        fake.say(fake.result("x")),
        fake.Serve(),
    )
    here = quarterdeck.at_terminal("run", "hello", TERM="dumb")
    assert await here.end() == 0
    assert "a **bold** word\n\ndone · " in here.shown
    assert "\x1b" not in here.raw


async def test_typed_text_outlives_an_interrupt_and_the_terminal_is_as_before_at_the_end(
    quarterdeck: Quarterdeck,
) -> None:
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(delta("so far")),
        fake.Expect("control_request", "interrupt"),
        fake.say(fake.answer(), fake.result("", subtype="error_during_execution", is_error=True)),
        fake.Serve(),
    )
    here = quarterdeck.at_terminal("run")
    await here.see(">")
    here.press("hello\n")
    await here.see("so far")
    here.press("kept")
    await here.see("> kept")
    here.interrupt()
    await here.see("interrupted · ")
    here.press(" text\n")
    await here.see("echo: kept text")
    await here.see("done · ")
    assert not here.echoes()
    here.interrupt()
    await here.see("Ctrl-C again, Ctrl-D")
    here.interrupt()
    assert await here.end() == 130
    assert here.echoes()
    assert here.raw.rfind("\x1b[?2004l") > here.raw.rfind("\x1b[?2004h")
    assert not here.rows.endswith(">")


async def test_keys_during_a_single_prompt_do_not_disturb_the_rows(
    quarterdeck: Quarterdeck,
) -> None:
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(delta("begun")),
        fake.Wait(1.5),
        fake.say(fake.assistant("begun and over"), fake.result("x")),
        fake.Serve(),
    )
    here = quarterdeck.at_terminal("run", "hello")
    await here.see("begun")
    here.press("typed\ntwice\n")
    assert await here.end() == 0
    assert here.rows.startswith("begun and over\n\ndone · ")
    assert "typed" not in here.rows
    assert "working" not in here.rows
    assert here.echoes()
