"""Answers in the CLI's own form: what they decide, and what is refused of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, UsageError
from quarterdeck.hub.permissions.answers import late_prompt, reply_to
from quarterdeck.hub.permissions.deadlines import check_answerer
from quarterdeck.hub.permissions.edits import edited_call
from quarterdeck.hub.permissions.raw_answers import check_raw
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.commands import AnswerAsk, RawAnswer
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.wire.answers import AllowResult, DenyResult
from quarterdeck.wire.versions import Version

NEWEST = Version.parse("2.1.325")
QUESTION = {
    "question": "Which?",
    "header": "Way",
    "options": [{"label": "Left", "description": "x"}, {"label": "Right", "description": "y"}],
    "multiSelect": False,
}
SET_MODE = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def _opened(kind: AskKind = AskKind.TOOL, tool: str = "Bash", **more: Any) -> AskOpened:
    given: dict[str, Any] = {"command": "ls"} if tool == "Bash" else {"questions": [QUESTION]}
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": "t"}
    return AskOpened(
        ask="s.a",
        run="r",
        request_id="q",
        ask_kind=kind,
        tool=tool,
        title="ls",
        request=Raw(json.dumps(request).encode()),
        **more,
    )


def _answer(**body: Any) -> RawAnswer:
    return RawAnswer(body=Raw(json.dumps(body).encode()))


def _reply(answer: RawAnswer, opened: AskOpened | None = None) -> Any:
    return reply_to(opened or _opened(), answer, version=NEWEST, bypass_allowed=False)


def test_an_allowance_keeps_the_input_and_carries_the_changes() -> None:
    reply = _reply(_answer(behavior="allow", updatedPermissions=[SET_MODE]))
    assert isinstance(reply.body, AllowResult)
    assert json.loads(bytes(reply.body.updated_input)) == {"command": "ls"}
    assert "the CLI changes: setMode acceptEdits (session)" in map(coded_text, reply.coded)
    assert reply.allowed


def test_a_denial_has_its_words() -> None:
    reply = _reply(_answer(behavior="deny", message="no", interrupt=True))
    assert isinstance(reply.body, DenyResult)
    assert (reply.body.message, reply.body.interrupt, reply.allowed) == ("no", True, False)


def test_another_input_is_for_the_rules_to_decide() -> None:
    assert edited_call(_opened(), _answer(behavior="allow")) is None
    assert edited_call(_opened(), _answer(behavior="deny", updatedInput={"command": "x"})) is None
    same = _answer(behavior="allow", updatedInput={"command": "ls"})
    assert edited_call(_opened(), same) is None
    other = edited_call(_opened(), _answer(behavior="allow", updatedInput={"command": "rm x"}))
    assert other is not None
    assert json.loads(bytes(other.input)) == {"command": "rm x"}
    # What was not decided about does not run.
    reply = _reply(_answer(behavior="allow", updatedInput={"command": "rm x"}))
    assert json.loads(bytes(reply.body.updated_input)) == {"command": "ls"}


def test_the_answers_to_questions_are_in_the_input() -> None:
    opened = _opened(AskKind.QUESTIONS, "AskUserQuestion")
    given = {"questions": [QUESTION], "answers": {"Which?": "Left"}}
    answer = _answer(behavior="allow", updatedInput=given)
    assert edited_call(opened, answer) is None
    assert json.loads(bytes(_reply(answer, opened).body.updated_input)) == given


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"behavior":"maybe"}', b"nonsense"])
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError):
        _reply(RawAnswer(body=Raw(body)))


def test_only_an_owner_and_a_program_may_change_permissions() -> None:
    changes = _answer(behavior="allow", updatedPermissions=[SET_MODE]).body
    for role in ("owner", "program"):
        check_raw(changes, role)
    for role in ("operator", "viewer", "", "nobody"):
        with pytest.raises(Forbidden):
            check_raw(changes, role)
    check_raw(_answer(behavior="allow").body, "operator")


def test_a_session_without_bypass_cannot_be_put_into_it() -> None:
    bypass = {**SET_MODE, "mode": "bypassPermissions"}
    with pytest.raises(UsageError, match="bypass"):
        _reply(_answer(behavior="allow", updatedPermissions=[bypass]))


def test_a_rule_that_wants_certain_people_takes_only_a_denial_of_others() -> None:
    opened = _opened(answered_by=(("role:owner",),), rule="x")

    def by_program(answer: RawAnswer) -> AnswerAsk:
        return AnswerAsk(ask="s.a", answer=answer, by="program ada", role="program")

    check_answerer(opened, by_program(_answer(behavior="deny")))
    with pytest.raises(Forbidden):
        check_answerer(opened, by_program(_answer(behavior="allow")))


def test_a_late_answer_is_told_in_words() -> None:
    assert "says no. not now" in late_prompt(_opened(), _answer(behavior="deny", message="not now"))
    allowed = _answer(behavior="allow", updatedInput={"command": "ls -a"})
    assert "ls -a" in late_prompt(_opened(), allowed)
    assert late_prompt(_opened(), _answer(behavior="allow")).endswith("The user allows it.")
