"""A question as a card: all of it is shown, and each key means one answer."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.cli.top.card import MOST_LINES, Card, Replies, card_of
from quarterdeck.domain.errors import UsageError
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
from quarterdeck.protocol.views import AskView

SUGGESTION = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "make:*"}],
    "behavior": "allow",
    "destination": "session",
}
COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
SIZES = COLOUR | {"question": "Which sizes?", "header": "Size", "multiSelect": True}


def tool(name: str, **given: object) -> dict[str, object]:
    return {"subtype": "can_use_tool", "tool_name": name, "input": given}


def card(request: dict[str, object], *, ended: bool = False, **fields: Any) -> Card:
    opened = AskOpened(
        ask="s.a",
        run="r",
        request_id="1",
        ask_kind=AskKind.TOOL,
        tool="Bash",
        title="",
        request=Raw(json.dumps(request).encode()),
    )
    opened = msgspec.structs.replace(opened, **fields)
    return card_of(AskView(session="s", seq=1, at=0, opened=opened, ended=ended))


def text(made: Card) -> str:
    return "\n".join(line.plain for line in made.lines)


def answers(made: Card, typed: str = "") -> dict[str, Answer]:
    return {choice.key: choice.make(typed) for choice in made.choices}


def lasting(made: Card) -> str:
    return "".join(choice.key for choice in made.choices if choice.lasting)


def test_a_call_is_allowed_once_by_one_key_and_for_longer_by_two() -> None:
    request = tool("Bash", command="make test") | {"permission_suggestions": [SUGGESTION]}
    made = card(request, narrowest=("Bash(make test)",), reasons=("no rule",))
    assert "command: make test" in text(made)
    assert "why you are asked: no rule" in text(made)
    assert answers(made, "not now") == {
        "a": AllowAnswer(),
        "s": AllowAnswer(scope=Scope.SESSION, rules=("Bash(make test)",)),
        "w": AllowAnswer(scope=Scope.ALWAYS, rules=("Bash(make test)",)),
        "1": AllowAnswer(updates=(0,)),
        "d": DenyAnswer(message="not now"),
        "x": DenyAnswer(stop=True),
    }
    assert lasting(made) == "sw1x"
    labels = {choice.key: choice.label for choice in made.choices}
    assert labels["s"] == "allow Bash(make test) in this session"
    assert labels["1"].startswith("allow once, and allow Bash(make:*) for this session")


@pytest.mark.parametrize("fields", [{"narrowest": ()}, {"narrowest": ("Bash",), "lasting": False}])
def test_nothing_lasting_is_offered_where_no_rule_can_be_granted(fields: dict[str, Any]) -> None:
    assert lasting(card(tool("Bash", command="x"), **fields)) == "x"


def test_hostile_text_is_marked_and_nothing_is_cut() -> None:
    command = "ls \x1b[2J\x1b]0;x\x07 \u202e" + " " * 500 + "rm -rf / " + "long " * 2000
    shown = text(card(tool("Bash", command=command, description="[bold]x[/]\nsecond")))
    assert "\x1b" not in shown
    assert "⟨U+001B⟩[2J" in shown
    assert "⟨U+202E⟩" in shown
    assert "· 500 blanks ·rm -rf /" in shown.replace("blanks · rm", "blanks ·rm")
    assert shown.count("long ") >= 1999
    assert "[bold]x[/]" in shown


def test_what_is_too_long_to_be_read_here_can_only_be_denied() -> None:
    content = "\n".join(str(number) for number in range(MOST_LINES + 10))
    made = card(tool("Write", file_path="/a", content=content), narrowest=("Write",))
    assert set(answers(made)) == {"d", "x"}
    assert "too long" in text(made)


def test_a_plan_is_executed_revised_or_rejected() -> None:
    made = card(tool("ExitPlanMode", plan="1. do it"), plan="1. do it")
    assert text(made) == "1. do it"
    assert answers(made, "shorter") == {
        "y": PlanAnswer(choice="manual"),
        "e": PlanAnswer(choice="auto"),
        "f": PlanAnswer(choice="fresh"),
        "k": PlanAnswer(choice="revise", feedback="shorter"),
        "r": PlanAnswer(choice="reject", feedback="shorter"),
    }
    assert lasting(made) == "ef"
    without = card(tool("ExitPlanMode", plan="1. do it"))
    assert "f" not in answers(without)


def test_a_form_is_accepted_with_values() -> None:
    request = {"subtype": "elicitation", "mcp_server_name": "s\x1b", "message": "Your name?"}
    made = card({**request})
    assert "\x1b" not in made.title
    accepted = answers(made, '{"name": "Ada"}')["y"]
    assert isinstance(accepted, ElicitationAnswer)
    assert bytes(accepted.content) == b'{"name":"Ada"}'
    with pytest.raises(UsageError, match="not a JSON object"):
        answers(made, "Ada")


@pytest.mark.parametrize("request_", [{"subtype": "unheard_of"}, {}, {"subtype": 5}])
def test_what_cannot_be_read_can_only_be_denied(request_: dict[str, object]) -> None:
    assert set(answers(card(request_))) == {"d"}


def test_a_question_whose_agent_has_ended_says_so() -> None:
    made = card(tool("Bash", command="x"), ended=True, wait=30.0)
    assert "an answer resumes the session" in text(made)
    assert "without an answer in 30 s: deny" in text(made)


def test_options_are_chosen_by_number_and_sent_together() -> None:
    made = card(tool("AskUserQuestion", questions=[COLOUR, SIZES]))
    assert answers(made) == {"k": SkipAnswer()}
    replies = Replies(made.questions)
    assert [replies.choose(number) for number in (3, 1, 2)] == [False, True, True]
    complete = [replies.complete]
    replies.move(1)
    replies.choose(2)
    replies.choose(1)
    assert [*complete, replies.complete] == [False, True]
    assert replies.answer() == QuestionsAnswer(
        answers={"Which colour?": "Blue", "Which sizes?": ("Red", "Blue")}
    )
    shown = [line.plain for line in replies.lines()]
    assert shown == [
        "Which colour?",
        "    ( ) Red  warm",
        "    (•) Blue  cold",
        "▶ Which sizes?",
        "  1 [x] Red  warm",
        "  2 [x] Blue  cold",
    ]
    replies.choose(1)
    replies.write("none of them")
    assert replies.answer().answers["Which sizes?"] == "none of them"
