"""Questions as dialogues with an editor: what is offered, and what an answer means. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from acp import schema

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.acp.v1.asks import Request, dialogue_for
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
    Scope,
    SkipAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.roles import Role
from support.acp_shapes import form, me, opened

CANCELLED = {"outcome": {"outcome": "cancelled"}}
QUESTIONS = {
    "questions": [
        {
            "question": "Which?",
            "options": [{"label": "red", "description": "hot"}, {"label": "blue"}],
        },
        {"question": "Many?", "multiSelect": True, "options": [{"label": "a"}, {"label": "b"}]},
        {"question": "Free?", "options": []},
    ]
}


def chose(option: str) -> dict[str, object]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def answered(
    ask: AskOpened, *results: object, role: Role = Role.OWNER, forms: bool = False
) -> tuple[Answer | None, list[Request]]:
    """The answer after these results, and what was asked."""
    dialogue = dialogue_for("s1", ask, me(role), forms=forms)
    assert dialogue is not None
    asked = [next(dialogue)]
    for result in results:
        try:
            asked.append(dialogue.send(result))
        except StopIteration as end:
            found: Answer | None = end.value
            return found, asked
    raise AssertionError(f"more is asked: {asked[-1]}")


def offered(request: Request) -> dict[str, str]:
    assert isinstance(request, schema.RequestPermissionRequest)
    return {option.option_id: option.kind for option in request.options}


@pytest.mark.parametrize(
    ("option", "answer"),
    [
        ("allow", AllowAnswer()),
        ("session", AllowAnswer(scope=Scope.SESSION, rules=("Bash(make)",))),
        ("always", AllowAnswer(scope=Scope.ALWAYS, rules=("Bash(make)",))),
        ("deny", DenyAnswer()),
        ("stop", DenyAnswer(stop=True)),
    ],
)
def test_each_button_of_a_call_is_one_answer(option: str, answer: Answer) -> None:
    found, (asked,) = answered(opened(reasons=("nobody allows it",)), chose(option))
    assert found == answer
    assert offered(asked) == {
        "allow": "allow_once",
        "session": "allow_always",
        "always": "allow_always",
        "deny": "reject_once",
        "stop": "reject_once",
    }
    assert isinstance(asked, schema.RequestPermissionRequest)
    assert asked.tool_call.tool_call_id == "t1"
    assert asked.tool_call.raw_input == {"command": "make"}
    assert "nobody allows it" in str(asked.tool_call.content)
    assert asked.field_meta == {"quarterdeck": {"ask": "s1.a1"}}


def test_no_more_is_offered_than_the_hub_offers() -> None:
    for ask in (opened(lasting=False), opened(narrowest=())):
        _, (asked,) = answered(ask, chose("allow"))
        assert list(offered(asked)) == ["allow", "deny", "stop"]
        with pytest.raises(UsageError, match="'session' was not offered"):
            answered(ask, chose("session"))
    _, (asked,) = answered(opened(), chose("allow"), role=Role.OPERATOR)
    assert list(offered(asked)) == ["allow", "session", "deny", "stop"]
    with pytest.raises(UsageError, match="was not offered"):
        answered(opened(), chose("always"), role=Role.OPERATOR)


def test_who_may_not_answer_is_not_asked_or_may_only_deny() -> None:
    assert dialogue_for("s1", opened(), me(Role.VIEWER), forms=True) is None
    ask = opened(answered_by=(("bob", "role:owner"), ("eve",)))
    for kind in AskKind:
        found, (asked,) = answered(
            msgspec.structs.replace(ask, ask_kind=kind), chose("stop"), forms=True
        )
        assert found == DenyAnswer(stop=True)
        assert list(offered(asked)) == ["deny", "stop"]
        assert "bob or role:owner; and eve" in str(asked)
    assert answered(ask, CANCELLED)[0] is None
    mine = opened(answered_by=(("ada",), ("role:owner",)))
    assert answered(mine, chose("allow"))[0] == AllowAnswer()


@pytest.mark.parametrize(
    "result",
    [None, [], {}, "allow", {"outcome": "allow"}, {"outcome": {"outcome": "selected"}}, chose("x")],
)
def test_a_result_that_was_not_offered_is_no_answer(result: object) -> None:
    with pytest.raises(UsageError):
        answered(opened(), result)


@pytest.mark.parametrize(
    "ask",
    [
        opened(),
        opened("ExitPlanMode", AskKind.PLAN, {"plan": "do"}),
        opened("AskUserQuestion", AskKind.QUESTIONS, QUESTIONS),
        form({"type": "object", "properties": {}}),
    ],
)
def test_a_dialogue_that_is_closed_leaves_the_question_open(ask: AskOpened) -> None:
    assert answered(ask, CANCELLED)[0] is None


def test_a_change_of_a_file_is_shown_as_a_diff() -> None:
    given = {"file_path": "/work/a.py", "old_string": "one", "new_string": "two"}
    _, (asked,) = answered(opened("Edit", given=given, narrowest=()), chose("allow"))
    assert isinstance(asked, schema.RequestPermissionRequest)
    assert asked.tool_call.content is not None
    (diff,) = asked.tool_call.content
    assert isinstance(diff, schema.FileEditToolCallContent)
    assert (diff.path, diff.old_text, diff.new_text) == ("/work/a.py", "one", "two")
    assert asked.tool_call.locations is not None


# --- plans ---------------------------------------------------------------------------------------


def test_a_plan_is_carried_out_or_rejected() -> None:
    ask = opened("ExitPlanMode", AskKind.PLAN, {"plan": "1. Do it."}, plan="1. Do it.")
    for choice in ("auto", "manual", "fresh", "reject"):
        found, (asked,) = answered(ask, chose(choice))
        assert found == PlanAnswer(choice=choice)
        assert "1. Do it." in str(asked)
        assert list(offered(asked)) == ["auto", "manual", "fresh", "reject"]
    untold = opened("ExitPlanMode", AskKind.PLAN, {})
    _, (asked,) = answered(untold, chose("auto"))
    assert "fresh" not in offered(asked)


def test_a_plan_is_revised_with_a_form() -> None:
    ask = opened("ExitPlanMode", AskKind.PLAN, {"plan": "1. Do it."})
    said = {"action": "accept", "content": {"feedback": " shorter "}}
    found, (_, asked) = answered(ask, chose("revise"), said, forms=True)
    assert found == PlanAnswer(choice="revise", feedback="shorter")
    assert isinstance(asked, schema.CreateFormSessionElicitationRequest)
    for nothing in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept"}):
        assert answered(ask, chose("revise"), nothing, forms=True)[0] is None


# --- questions -----------------------------------------------------------------------------------


def test_questions_by_buttons() -> None:
    ask = opened("AskUserQuestion", AskKind.QUESTIONS, QUESTIONS)
    found, asked = answered(
        ask, chose("option1"), chose("option1"), chose("option0"), chose("done"), chose("skip")
    )
    assert found == QuestionsAnswer(answers={"Which?": "blue", "Many?": ("b", "a")})
    assert [request.tool_call.title for request in asked if not _is_form(request)] == [
        "Which?", "Many?", "Many?", "Many?", "Free?",
    ]  # fmt: skip
    assert "option1" not in offered(asked[2]), "what was chosen is not offered again"
    skipped, _ = answered(ask, chose("skip"), chose("skip"), chose("skip"))
    assert skipped == SkipAnswer()


def _is_form(request: Request) -> bool:
    return isinstance(request, schema.CreateFormSessionElicitationRequest)


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        ({"answer1": "red"}, {"Which?": "red"}),
        ({"answer1": "red", "other1": "green"}, {"Which?": "green"}),
        ({"answer1": "not offered", "answer2": ["a", "x", 7]}, {"Many?": ("a",)}),
        ({"answer2": ["a"], "other2": "c"}, {"Many?": ("a", "c")}),
        ({"other3": "words"}, {"Free?": "words"}),
        ({"answer1": 7, "other1": 8, "answer2": {}}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_questions_by_a_form(content: dict[str, Any], answers: dict[str, Any] | None) -> None:
    ask = opened("AskUserQuestion", AskKind.QUESTIONS, QUESTIONS)
    result = {"action": "accept", "content": content}
    found, (asked,) = answered(ask, result, forms=True)
    assert found == (SkipAnswer() if answers is None else QuestionsAnswer(answers=answers))
    assert isinstance(asked, schema.CreateFormSessionElicitationRequest)
    assert asked.requested_schema.properties is not None
    assert list(asked.requested_schema.properties) == [
        "answer1", "other1", "answer2", "other2", "other3",
    ]  # fmt: skip


def test_a_form_that_is_declined_or_closed_or_odd() -> None:
    ask = opened("AskUserQuestion", AskKind.QUESTIONS, QUESTIONS)
    assert answered(ask, {"action": "decline"}, forms=True)[0] == SkipAnswer()
    assert answered(ask, {"action": "cancel"}, forms=True)[0] is None
    results: list[object] = [None, {}, {"action": "yes"}, []]
    for odd in results:
        with pytest.raises(UsageError):
            answered(ask, odd, forms=True)


def test_questions_that_cannot_be_read_can_only_be_denied() -> None:
    ask = opened("AskUserQuestion", AskKind.QUESTIONS, {"questions": "odd"})
    found, (asked,) = answered(ask, chose("deny"))
    assert found == DenyAnswer()
    assert list(offered(asked)) == ["deny", "stop"]
    odd = opened("shop", AskKind.ELICITATION)  # a request of another kind
    assert answered(odd, chose("deny"))[0] == DenyAnswer()


# --- forms of MCP servers ------------------------------------------------------------------------

SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


def test_a_form_of_a_server_is_passed_on() -> None:
    result = {"action": "accept", "content": {"size": 7}}
    found, (asked,) = answered(form(SIZE), result, forms=True)
    assert isinstance(found, ElicitationAnswer)
    assert (found.action, bytes(found.content)) == ("accept", b'{"size":7}')
    assert isinstance(asked, schema.CreateFormSessionElicitationRequest)
    assert asked.message == "shop: Your size?"
    declined, _ = answered(form(SIZE), {"action": "decline"}, forms=True)
    assert declined == ElicitationAnswer(action="decline")
    assert answered(form(SIZE), {"action": "cancel"}, forms=True)[0] is None


def test_a_form_without_an_editor_that_has_forms_can_be_declined_only() -> None:
    found, (asked,) = answered(form(SIZE), chose("decline"))
    assert found == ElicitationAnswer(action="decline")
    assert list(offered(asked)) == ["decline", "cancel"]
    for odd in ("text", {"type": "object", "properties": 7}):
        assert list(offered(answered(form(odd), chose("cancel"), forms=True)[1][0])) == [
            "decline",
            "cancel",
        ]


def test_a_page_to_visit_is_shown_and_accepted() -> None:
    page = form(None, url="https://shop.test/pay")
    found, (asked,) = answered(page, chose("accept"), forms=True)
    assert found == ElicitationAnswer(action="accept")
    assert "https://shop.test/pay" in str(asked)
