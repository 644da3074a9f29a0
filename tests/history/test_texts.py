"""What of an event can be found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.history.story import moment_of
from quarterdeck.history.texts import texts_of
from quarterdeck.journal.search import Text
from quarterdeck.protocol import events
from quarterdeck.protocol.search import TextKind
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.testing import fake


def texts(event: events.AnyEvent) -> tuple[Text, ...]:
    return texts_of(Stored(session="s", seq=1, position=1, at=5, event=event, json=b""))


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def said(line: object) -> events.Said:
    return events.Said(run="r", number=1, line=raw(line))


def assistant(*content: object, **more: object) -> dict[str, object]:
    message = {"type": "message", "role": "assistant", "content": list(content)}
    return {"type": "assistant", "message": message, "uuid": "u", **more}


def test_a_prompt_is_found_by_its_text_alone() -> None:
    blocks = [{"type": "image", "source": {}}, {"type": "text", "text": "look"}]
    for content, expected in (("plain", "plain"), (blocks, "look")):
        queued = events.PromptQueued(prompt="p", content=raw(content), by="ann")
        assert texts(queued) == (Text(kind=TextKind.PROMPT, text=expected),)
    changed = events.PromptChanged(prompt="p", content=raw("other"), by="ann")
    assert texts(changed) == (Text(kind=TextKind.PROMPT, text="other"),)


def test_an_answer_is_found_and_thoughts_are_not() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    found = texts(said(assistant(thought, {"type": "text", "text": "done"})))
    assert found == (Text(kind=TextKind.ANSWER, text="done"),)


def test_a_call_is_found_by_its_tool_and_its_short_arguments() -> None:
    given = {"command": "make it", "content": "x" * 3000, "n": 5, "description": "why"}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": given}
    (found,) = texts(said(assistant(call)))
    assert found == Text(kind=TextKind.TOOL, text="Bash\nmake it\nwhy", tool="Bash")


def test_what_tools_gave_and_what_the_hub_sends_is_not_found() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "the assistant says"}
    user = {"type": "user", "message": {"role": "user", "content": [result]}}
    assert texts(said(user)) == ()
    echo = {"type": "user", "message": {"role": "user", "content": "typed"}, "isReplay": True}
    assert texts(said(echo)) == ()
    assert texts(events.Sent(run="r", number=1, line=raw(assistant()))) == ()
    assert texts(events.Noted(level="info", text="x")) == ()
    assert texts(said(fake.result("ok"))) == ()


def test_the_result_of_a_turn_and_the_text_of_a_plan_are_answers() -> None:
    ended = events.TurnEnded(prompts=(), failed=True, outcome="error", cost_usd=0, text="it broke")
    assert texts(ended) == (Text(kind=TextKind.ANSWER, text="it broke"),)
    opened = events.AskOpened(
        ask="q",
        run="r",
        request_id="1",
        ask_kind=events.AskKind.PLAN,
        tool="ExitPlanMode",
        title="plan",
        request=Raw(b"{}"),
        plan="First, then.",
    )
    assert texts(opened) == (Text(kind=TextKind.ANSWER, text="First, then."),)


def test_what_was_imported_is_found_with_its_prompts_and_its_own_time() -> None:
    time = "2026-01-02T03:04:05.678Z"
    echo = {"type": "user", "message": {"content": "typed"}, "isReplay": True, "timestamp": time}
    line = assistant({"type": "text", "text": "said"}, timestamp=time)
    for run, expected in (
        (events.IMPORTED, [("typed", True), ("said", True)]),
        ("r", [("said", False)]),
    ):
        found = [
            (text.text, text.at == 1767323045678)
            for each in (echo, line)
            for text in texts(events.Recalled(run=run, uuid="u", line=raw(each)))
        ]
        assert found == expected


@pytest.mark.parametrize(
    "timestamp", [None, "", "yesterday", "9999-99-99", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_that_is_none_is_none(timestamp: str | None) -> None:
    assert moment_of(timestamp) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "message", "content", "text", "input", "name", "id"]),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_no_line_fails(value: object) -> None:
    for kind in ("assistant", "user"):
        line = {"type": kind, "message": value, "isReplay": True}
        for event in (said(line), events.Recalled(run=events.IMPORTED, uuid="u", line=raw(line))):
            assert isinstance(texts(event), tuple)
