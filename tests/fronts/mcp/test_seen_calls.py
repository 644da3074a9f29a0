"""Which calls of an agent are served: those that the journal has as allowed."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.fronts.mcp.seen_calls import cli_allows, look
from quarterdeck.protocol.events import (
    AskAnswered,
    AskKind,
    AskOpened,
    AskWithdrawn,
    Decided,
    Event,
    LeftToCli,
    Said,
)
from quarterdeck.protocol.sessions import SessionSpec
from support import lines

GIVEN = b'{"prompt": "work", "n": 1}'


def said(call: str = "t1", given: bytes = GIVEN) -> Said:
    block = {"type": "tool_use", "id": call, "name": "x", "input": json.loads(given)}
    line = lines.line(
        type="assistant",
        message={"role": "assistant", "content": [block], "model": "m", "id": "m1"},
        uuid="u1",
        session_id=lines.SESSION,
    )
    return Said(run="r", number=1, line=Raw(line.rstrip(b"\n")))


def decided(
    verdict: str, call: str = "t1", by: str = "policy", *, rewritten: bool = False
) -> Decided:
    return Decided(
        tool="x", title="x", verdict=verdict, by=by, tool_use_id=call, rewritten=rewritten
    )


def opened(ask: str = "a1", call: str = "t1") -> AskOpened:
    return AskOpened(
        ask=ask,
        run="r",
        request_id="q",
        ask_kind=AskKind.TOOL,
        tool="x",
        title="x",
        request=Raw(b"{}"),
        tool_use_id=call,
    )


def answered(
    *, allowed: bool, answer: bytes = b'{"answer": "allow"}', ask: str = "a1"
) -> AskAnswered:
    return AskAnswered(ask=ask, by="ada", answer=Raw(answer), allowed=allowed)


LEFT = LeftToCli(tool_use_id="t1")
EDITED = b'{"answer": "allow", "input": {"prompt": "less"}}'

PASS: dict[str, list[Event]] = {
    "a rule allows it": [said(), decided("allow")],
    "a person allows it": [said(), LEFT, opened(), answered(allowed=True)],
    "a rule asks, and a person allows": [
        said(),
        decided("ask"),
        opened(),
        answered(allowed=True),
    ],
    "another call is denied": [said(), decided("allow"), decided("deny", "t2")],
}
FAIL: dict[str, list[Event]] = {
    "nobody has said it": [decided("allow")],
    "nothing is decided yet": [said()],
    "the CLI may still ask": [said(), LEFT],
    "a person thinks": [said(), LEFT, opened()],
    "a person thinks, of a rule that asks": [said(), decided("ask"), opened()],
    "a person denies it": [said(), LEFT, opened(), answered(allowed=False)],
    "the question was withdrawn": [said(), LEFT, opened(), AskWithdrawn(ask="a1", reason="gone")],
    "one of two still thinks": [
        said(),
        opened(),
        answered(allowed=True),
        opened("a2"),
    ],
    "a rule denies it": [said(), decided("deny")],
    "a rule denies it after all": [said(), decided("allow"), decided("deny")],
    "another call is allowed": [said(), said("t2"), decided("allow", "t2")],
    "only the CLI says so, when it is over": [said(), decided("allow", by="cli")],
}


@pytest.mark.parametrize("events", PASS.values(), ids=PASS)
def test_a_call_that_was_allowed_runs_with_the_arguments_that_were_allowed(
    events: list[Event],
) -> None:
    seen = look(events, "t1")
    assert seen.may_run(cli_allows=False)
    assert seen.runs_with(b'{"n":1,"prompt":"work"}')
    for other in (b'{"prompt": "work"}', b'{"prompt": "work", "n": 1, "m": 2}', b"{}", b"", b"["):
        assert not seen.runs_with(other)


@pytest.mark.parametrize("events", FAIL.values(), ids=FAIL)
def test_a_call_that_nobody_has_allowed_does_not_run(events: list[Event]) -> None:
    seen = look(events, "t1")
    assert not (seen.may_run(cli_allows=False) and seen.runs_with(GIVEN))


def test_what_a_person_has_changed_runs_as_changed() -> None:
    seen = look([said(), LEFT, opened(), answered(allowed=True, answer=EDITED)], "t1")
    assert seen.may_run(cli_allows=False)
    assert not seen.runs_with(GIVEN)
    assert seen.runs_with(b'{"prompt": "less"}')


def test_what_a_rule_has_rewritten_does_not_run_since_no_event_has_it() -> None:
    seen = look([said(), decided("allow", rewritten=True)], "t1")
    assert not seen.runs_with(GIVEN)


def test_a_flag_of_the_session_allows_what_is_left_to_the_cli() -> None:
    assert look([said(), LEFT], "t1").may_run(cli_allows=True)
    for events in ([said()], [said(), LEFT, opened()], [said(), LEFT, decided("deny")]):
        assert not look(events, "t1").may_run(cli_allows=True)


@pytest.mark.parametrize(
    ("allowed", "mode", "expected"),
    [
        ((), None, False),
        (("mcp__quarterdeck",), None, True),
        (("mcp__quarterdeck__*",), None, True),
        (("mcp__quarterdeck__spawn",), "plan", True),
        (("mcp__quarterdeck__send",), None, False),
        (("mcp__quarter",), None, False),
        (("Bash", "*"), None, False),
        ((), "acceptEdits", False),
        ((), "bypassPermissions", True),
    ],
)
def test_which_flags_allow_a_tool(
    allowed: tuple[str, ...], mode: str | None, expected: bool
) -> None:
    spec = SessionSpec(directory="/work", allowed_tools=allowed)
    assert cli_allows(spec, mode, "mcp__quarterdeck__spawn") is expected
