"""Questions at a real terminal, with the real CLI behind them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.agent.asks import ToolAsk, to_ask
from quarterdeck.cli.terminal.keyboard import tool_card
from quarterdeck.testing import fake
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import Gate, ToolUse, play, reply
from quarterdeck.wire.requests import CanUseTool
from support.command_line import Quarterdeck, Terminal

pytestmark = pytest.mark.anyio

RUN = ("run", "--api-billing")
TOUCH = ToolUse("Bash", {"command": "touch made", "description": "make it"})
COLOURS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]


def question(text: str, *, several: bool = False) -> dict[str, object]:
    return {"question": text, "header": "Colour", "multiSelect": several, "options": COLOURS}


@pytest.mark.real_cli
async def test_a_conversation_goes_on_until_the_person_leaves(
    quarterdeck: Quarterdeck, model: ScriptedModel, tmp_path: Path
) -> None:
    here = quarterdeck.at_terminal(*RUN, EDITOR=str(editor_in(tmp_path)))
    await here.expect("> ")
    here.press("hello\n")
    await here.expect("echo: hello")
    await here.expect("done · ")
    await here.expect("> ")
    here.press(play(reply("a long", Gate("held"))) + "\n")
    await model.wait_at_gate("held")
    await here.expect("a long")
    here.interrupt()
    await here.expect("interrupted · ")
    await here.expect("> ")
    here.press("two \\\n")
    await here.expect("> two ⏎")
    here.press("lines\n")
    await here.expect("echo: two\nlines")
    await here.expect("done · ")
    await here.expect("> ")
    for turn in (
        a_tool_is_denied_with_a_message_that_the_model_reads,
        the_input_can_be_changed_in_an_editor,
        questions_are_answered_by_number_and_in_ones_own_words,
        a_tool_is_allowed_once_and_then_always,
    ):
        await turn(here, quarterdeck.work, model)
        await here.expect("done · ")
        await here.expect("> ")
    here.press("/exit\n")
    assert await here.end() == 0


def editor_in(folder: Path) -> Path:
    """An editor that writes nonsense at first."""
    editor = folder / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        f"if [ -e '{folder}/again' ]; then sed -i s/made/changed/ \"$1\"\n"
        f"else touch '{folder}/again'; echo 'no JSON' > \"$1\"; fi\n"
    )
    editor.chmod(0o755)
    return editor


async def a_tool_is_denied_with_a_message_that_the_model_reads(
    here: Terminal, work: Path, model: ScriptedModel
) -> None:
    here.press(play(TOUCH, TOUCH, "fin") + "\n")
    await here.expect("┌ Permission")
    await here.expect("\n? ")
    here.press("what\n")
    await here.expect("one of the letters above")
    here.press("n\n")
    await here.expect("why (for the model")
    here.press("use another name\n")
    await here.expect("┌ Permission")
    await here.expect("\n? ")
    here.press("n not that either\n")
    await here.expect("fin")
    received = [request.last_text for request in model.turns]
    assert any("use another name" in text for text in received)
    assert any("not that either" in text for text in received)
    assert not (work / "made").exists()


async def the_input_can_be_changed_in_an_editor(
    here: Terminal, work: Path, model: ScriptedModel
) -> None:
    here.press(play(TOUCH, "fin") + "\n")
    await here.expect("┌ Permission")
    await here.expect("\n? ")
    here.press("e\n")
    await here.expect("not valid JSON for a tool")
    here.press("e\n")
    await here.expect("fin")
    assert (work / "changed").exists()
    assert not (work / "made").exists()


async def questions_are_answered_by_number_and_in_ones_own_words(
    here: Terminal, work: Path, model: ScriptedModel
) -> None:
    questions = [question("Which one?"), question("Which ones?", several=True), question("Else?")]
    here.press(play(ToolUse("AskUserQuestion", {"questions": questions}), "fin") + "\n")
    await here.expect("│ Which one?")
    await here.expect("│ 2  Blue  cold")
    await here.expect("\n? ")
    here.press("1,2\n")
    await here.expect("only one answer is allowed")
    here.press("9\n")
    await here.expect("there are 2 answers to choose from")
    here.press("2\n")
    await here.expect("│ Which ones?")
    await here.expect("\n? ")
    here.press("1, 2\n")
    await here.expect("│ Else?")
    await here.expect("\n? ")
    here.press("something warm\n")
    await here.expect("fin")
    received = model.turns[-1].last_text
    for answer in ('"Which one?"="Blue"', '"Which ones?"="Red, Green"', "something warm"):
        assert answer.replace("Green", "Blue") in received


async def a_tool_is_allowed_once_and_then_always(
    here: Terminal, work: Path, model: ScriptedModel
) -> None:
    before = here.shown.count("┌ Permission")
    write = [ToolUse("Write", {"file_path": f"{name}.txt", "content": "x\n"}) for name in "ab"]
    here.press(play(TOUCH, *write, "fin") + "\n")
    await here.expect("┌ Permission command: ")
    await here.expect("│ command: touch made")
    await here.expect("\n? ")
    here.press("y\n")
    await here.expect("┌ Permission file change: Write")
    await here.expect("+x")
    await here.expect("a  always: accept all file edits for this session")
    await here.expect("\n? ")
    here.press("a\n")
    await here.expect("fin")
    assert here.shown.count("┌ Permission") == before + 2
    assert all((work / name).exists() for name in ("made", "a.txt", "b.txt"))


@pytest.mark.real_cli
async def test_the_turn_can_be_stopped_with_a_denial(quarterdeck: Quarterdeck) -> None:
    here = quarterdeck.at_terminal(*RUN, play(TOUCH, "never said"))
    await here.expect("\n? ")
    here.press("s\n")
    assert await here.end() == 1
    assert "never said" not in here.shown.partition("? s")[2]
    assert "interrupted · " in here.shown


@pytest.mark.real_cli
async def test_a_plan_is_reviewed_until_it_is_approved(
    quarterdeck: Quarterdeck, model: ScriptedModel
) -> None:
    leave = ToolUse("ExitPlanMode", {"plan": "1. do it"})
    write = ToolUse("Write", {"file_path": "done.txt", "content": "x"})
    here = quarterdeck.at_terminal(*RUN, "--mode", "plan", play(leave, leave, write, "fin"))
    await here.expect("┌ Plan for review")
    await here.expect("\n? ")
    here.press("k with tests\n")
    await here.expect("┌ Plan for review")
    await here.expect("\n? ")
    here.press("a\n")
    await here.expect("fin")
    assert await here.end() == 0
    assert any("with tests" in request.last_text for request in model.turns)
    assert (quarterdeck.work / "done.txt").exists()  # not asked about: edits are accepted


@pytest.mark.real_cli
async def test_a_question_that_is_withdrawn_disappears(quarterdeck: Quarterdeck) -> None:
    here = quarterdeck.at_terminal(*RUN, play(TOUCH, "never said"))
    await here.expect("\n? ")
    here.interrupt()
    assert await here.end() == 130
    after = here.raw.rpartition("s  deny, and stop the turn")[2] or here.raw
    assert "\x1b[J" in after  # the rows of the question are cleared
    assert "interrupted · " in here.shown
    assert not (quarterdeck.work / "made").exists()


async def test_several_questions_are_shown_one_after_the_other(quarterdeck: Quarterdeck) -> None:
    asks = [fake.can_use_tool("Read", {"file_path": f"/{name}"}, f"ask-{name}") for name in "ab"]
    record = quarterdeck.home / "answers"
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(*asks),
        fake.Expect("control_response"),
        fake.Expect("control_response"),
        fake.say(fake.assistant("fin"), fake.result("fin")),
        fake.Serve(),
        record=record,
    )
    here = quarterdeck.at_terminal("run", "hello")
    await here.expect("│ file_path: /a")
    await here.expect("\n? ")
    assert "/b" not in here.shown
    here.press("y\n")
    await here.expect("│ file_path: /b")
    await here.expect("\n? ")
    here.press("n no\n")
    assert await here.end() == 0
    lines = [json.loads(line) for line in record.read_text().splitlines()[1:]]
    answers = [line["response"] for line in lines if line["type"] == "control_response"]
    assert [answer["request_id"] for answer in answers] == ["ask-a", "ask-b"]
    assert [answer["response"]["behavior"] for answer in answers] == ["allow", "deny"]


async def test_what_was_typed_before_the_question_does_not_answer_it(
    quarterdeck: Quarterdeck,
) -> None:
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant("begun")),
        fake.Wait(1.0),
        fake.say(fake.can_use_tool("Bash", {"command": "rm -rf \x1b[8mhidden"})),
        fake.Expect("control_response"),
        fake.say(fake.assistant("over"), fake.result("over")),
        fake.Serve(),
    )
    here = quarterdeck.at_terminal("run", "hello", size=(24, 40))
    await here.expect("begun")
    here.press("y\n")
    await here.expect("rm -rf ⟨U+001B⟩[8mhidden")
    await here.expect("\n? ")
    assert "over" not in here.shown
    here.press("\x04")  # Ctrl-D: no answer is a no
    assert await here.end() == 0
    assert "\x1b[8m" not in here.raw


async def test_no_color_means_no_colour(quarterdeck: Quarterdeck) -> None:
    quarterdeck.play_fake(fake.Initialize(), fake.Serve())
    here = quarterdeck.at_terminal("run", "hello", NO_COLOR="1")
    assert await here.end() == 0
    assert "echo: hello" in here.shown
    assert "\x1b[3" not in here.raw


def test_a_card_marks_what_cannot_be_seen_and_leaves_no_member_out() -> None:
    def card(tool: str, **given: object) -> str:
        request = CanUseTool(tool_name=tool, input=Raw(json.dumps(given).encode()))
        ask = to_ask("1", request)
        assert isinstance(ask, ToolAsk)
        return "\n".join(line.plain for line in tool_card(ask))

    shown = card(
        "Bash",
        command="make \u2067; touch PWNED \u2069" + " " * 400 + "x\u00ad",
        description="Allowed by policy.",
        dangerouslyDisableSandbox=True,
    )
    assert "command: make ⟨U+2067⟩; touch PWNED ⟨U+2069⟩· 400 blanks ·x⟨U+00AD⟩" in shown
    assert "the agent says: Allowed by policy." in shown
    assert "dangerouslyDisableSandbox: true" in shown
    edit = card("Edit", file_path="/a\u200b", old_string="a", new_string="b\x0cc", replace_all=True)
    assert "+b⟨U+000C⟩c" in edit
    assert "replace_all: true" in edit
    written = card("Write", file_path="/a", content=" " * 40 + "x\n\u2028y\n")
    assert "+" + " " * 40 + "x" in written
    assert "+⟨U+2028⟩y" in written
