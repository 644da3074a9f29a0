"""Answers of frontends in every known shape, as answers of the hub."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.fronts.relay.answers import read_answer, to_answer
from quarterdeck.fronts.relay.errors import BadLine
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from support.relay_shapes import INPUT, SHAPES, Json, standard

SUGGESTED = [
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow"},
]


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def opened(kind: AskKind = AskKind.TOOL) -> AskOpened:
    request = {
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "input": INPUT,
        "permission_suggestions": SUGGESTED,
    }
    return AskOpened(
        ask="s.a",
        run="r",
        request_id="q1",
        ask_kind=kind,
        tool="Bash",
        title="npm test",
        request=raw(request),
    )


def answer(line: Json, kind: AskKind = AskKind.TOOL) -> Answer:
    given = read_answer(raw({"type": "control_response", **line}))
    assert given.request_id == "q1"
    return to_answer(given, opened(kind))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_allows_and_denies(shape: str) -> None:
    allow, deny = SHAPES[shape]
    assert answer(allow) == AllowAnswer()
    assert answer(deny) == DenyAnswer(message="no")


def test_an_error_is_a_denial_with_its_text() -> None:
    line = {"response": {"subtype": "error", "request_id": "q1", "error": "it broke"}}
    assert answer(line) == DenyAnswer(message="it broke")


def test_a_denial_can_end_the_turn() -> None:
    body = {"behavior": "deny", "message": "stop", "interrupt": True}
    assert answer(standard(body)) == DenyAnswer(message="stop", stop=True)


def test_only_another_input_is_an_edit() -> None:
    other = {"command": "npm run build"}
    edited = answer(standard({"behavior": "allow", "updatedInput": other}))
    assert isinstance(edited, AllowAnswer)
    assert json.loads(bytes(edited.input)) == other
    for same in (INPUT, {}, None):
        body = {"behavior": "allow", "updatedInput": same}
        assert answer(standard(body)) == AllowAnswer()


def test_changes_are_those_that_the_cli_suggested_and_no_others() -> None:
    def updated(*updates: object) -> Json:
        return standard({"behavior": "allow", "updatedPermissions": list(updates)})

    assert answer(updated(SUGGESTED[1], SUGGESTED[0])) == AllowAnswer(updates=(1, 0))
    with pytest.raises(BadLine) as refused:
        answer(updated(SUGGESTED[0], {"type": "setMode", "mode": "bypassPermissions"}))
    assert refused.value.where == "response.response.updatedPermissions[1]"


def test_a_plan_is_carried_out_in_the_mode_that_the_answer_sets() -> None:
    def planned(*modes: str) -> Answer:
        updates = [{"type": "setMode", "mode": one, "destination": "session"} for one in modes]
        body = {"behavior": "allow", "updatedPermissions": updates}
        return answer(standard(body), AskKind.PLAN)

    assert planned() == PlanAnswer(choice="manual")
    assert planned("default") == PlanAnswer(choice="manual")
    assert planned("acceptEdits") == PlanAnswer(choice="auto")
    with pytest.raises(BadLine, match="acceptEdits or default"):
        planned("bypassPermissions")
    assert answer({"request_id": "q1", "approved": True}, AskKind.PLAN) == PlanAnswer(
        choice="manual"
    )
    assert answer(standard({"behavior": "deny", "message": "more tests"}), AskKind.PLAN) == (
        DenyAnswer(message="more tests")
    )


def test_questions_need_their_answers() -> None:
    body = {
        "behavior": "allow",
        "updatedInput": {"questions": [], "answers": {"Which?": "red", "Who?": ["ada", "bob"]}},
    }
    assert answer(standard(body), AskKind.QUESTIONS) == QuestionsAnswer(
        answers={"Which?": "red", "Who?": ("ada", "bob")}
    )
    with pytest.raises(BadLine, match="need answers"):
        answer({"request_id": "q1", "approved": True}, AskKind.QUESTIONS)


def test_a_form_is_accepted_or_declined() -> None:
    body = {"action": "accept", "content": {"name": "ada"}}
    accepted = answer(standard(body), AskKind.ELICITATION)
    assert isinstance(accepted, ElicitationAnswer)
    assert (accepted.action, json.loads(bytes(accepted.content))) == ("accept", {"name": "ada"})
    declined = answer({"request_id": "q1", "approved": False}, AskKind.ELICITATION)
    assert declined == ElicitationAnswer(action="decline")
    with pytest.raises(BadLine, match="a form needs"):
        answer({"request_id": "q1", "approved": True}, AskKind.ELICITATION)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        pytest.param({}, "response.request_id", id="nothing"),
        pytest.param({"approved": True}, "response.request_id", id="no request"),
        pytest.param({"request_id": 7, "approved": True}, "request_id", id="a number for an id"),
        pytest.param({"request_id": "q1"}, "response.response.behavior", id="no decision"),
        pytest.param(standard({}), "response.response.behavior", id="an empty body"),
        pytest.param(standard(None), "response.response.behavior", id="no body"),
        pytest.param(standard("allow"), "response.response", id="a text for a body"),
        pytest.param(standard({"behavior": "ask"}), "response.response.behavior", id="ask"),
        pytest.param(standard({"behavior": 1}), "response.response.behavior", id="a number"),
        pytest.param({"request_id": "q1", "approved": "yes"}, "approved", id="yes"),
        pytest.param(
            {"request_id": "q1", "permission": {"allow": 1}}, "permission.allow", id="1 for true"
        ),
        pytest.param(
            standard({"behavior": "allow", "updatedInput": [1]}),
            "response.response.updatedInput",
            id="a list for an input",
        ),
        pytest.param(
            standard({"behavior": "allow", "updatedPermissions": {}}),
            "response.response.updatedPermissions",
            id="an object for changes",
        ),
        pytest.param({"request_id": "q1", "response": []}, "response", id="a list"),
    ],
)
def test_an_answer_that_says_nothing_certain_is_refused_with_the_place(
    line: Json, where: str
) -> None:
    with pytest.raises(BadLine) as refused:
        answer(line)
    assert refused.value.where == where
