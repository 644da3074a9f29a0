"""What the options of `answer` come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.agent.asks import AnyAsk, Decision, ToolAsk
from quarterdeck.cli.hub.asks import AnswerArguments, confirmation_of, offers_of, to_answer
from quarterdeck.cli.hub.keyboard_answers import answer_at
from quarterdeck.cli.terminal.keyboard import Keyboard
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


def opened(kind: AskKind, tool: str = "Bash", **given: object) -> AskOpened:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": "t"}
    return AskOpened(
        ask="s.a",
        run="r",
        request_id="1",
        ask_kind=kind,
        tool=tool,
        title="",
        request=Raw(json.dumps(request).encode()),
    )


def questions(*texts: str) -> AskOpened:
    asked = [
        {"question": text, "header": f"H{number}", "options": [], "multiSelect": True}
        for number, text in enumerate(texts, 1)
    ]
    return opened(AskKind.QUESTIONS, "AskUserQuestion", questions=asked)


TOOL = opened(AskKind.TOOL, command="ls")
FORM = opened(AskKind.ELICITATION, "server")


@pytest.mark.parametrize(
    ("given", "asked", "answer"),
    [
        (AnswerArguments(verb="allow"), TOOL, AllowAnswer()),
        (AnswerArguments(verb="allow", scope=Scope.ALWAYS), TOOL, AllowAnswer(scope=Scope.ALWAYS)),
        (
            AnswerArguments(
                verb="allow",
                scope=Scope.SESSION,
                rules=("Bash(ls:*)",),
                duration="8h",
                updates=(2, 1),
            ),
            TOOL,
            AllowAnswer(scope=Scope.SESSION, rules=("Bash(ls:*)",), seconds=28_800, updates=(1, 0)),
        ),
        (
            AnswerArguments(verb="deny", message="no", stop=True),
            TOOL,
            DenyAnswer(message="no", stop=True),
        ),
        (AnswerArguments(verb="skip"), questions("Why?"), SkipAnswer()),
        (AnswerArguments(verb="deny"), None, DenyAnswer()),
        (AnswerArguments(plan="fresh"), None, PlanAnswer(choice="fresh")),
        (
            AnswerArguments(plan="revise", message="shorter"),
            None,
            PlanAnswer(choice="revise", feedback="shorter"),
        ),
        (AnswerArguments(verb="deny"), FORM, ElicitationAnswer(action="decline")),
        (AnswerArguments(verb="cancel"), FORM, ElicitationAnswer(action="cancel")),
        (
            AnswerArguments(answers=("Red",)),
            questions("1=2?"),
            QuestionsAnswer(answers={"1=2?": "Red"}),
        ),
        (
            AnswerArguments(answers=("1=2?=Red", "1=2?=Blue", "H2=x=y")),
            questions("1=2?", "Why?"),
            QuestionsAnswer(answers={"1=2?": ("Red", "Blue"), "Why?": "x=y"}),
        ),
        (AnswerArguments(answers=("Q=a",)), None, QuestionsAnswer(answers={"Q": "a"})),
    ],
)
def test_options_become_an_answer(
    given: AnswerArguments, asked: AskOpened | None, answer: Answer
) -> None:
    assert to_answer(given, asked) == answer


def test_an_input_comes_from_a_file_or_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"command": "pwd"}')
    for given in (str(file), '{"command": "pwd"}'):
        answer = to_answer(AnswerArguments(verb="allow", input=given), TOOL)
        assert isinstance(answer, AllowAnswer)
        assert json.loads(bytes(answer.input)) == {"command": "pwd"}


@pytest.mark.parametrize(
    ("given", "asked", "error"),
    [
        (AnswerArguments(), TOOL, "give one of"),
        (AnswerArguments(verb="allow", plan="auto"), TOOL, "give one of"),
        (AnswerArguments(verb="deny", input="{}"), TOOL, "--input needs allow"),
        (AnswerArguments(verb="allow", rules=("Bash",)), TOOL, "--rule and --for need --scope"),
        (AnswerArguments(verb="allow", duration="1h"), TOOL, "--rule and --for need --scope"),
        (
            AnswerArguments(verb="allow", scope=Scope.SESSION, duration="soon"),
            TOOL,
            "--for: a duration is required",
        ),
        (AnswerArguments(verb="allow", input="[1]"), TOOL, "--input: Expected `object`"),
        (AnswerArguments(verb="allow", input="/nowhere"), TOOL, "--input: cannot read /nowhere"),
        (AnswerArguments(verb="cancel"), TOOL, "'cancel' is not an answer"),
        (
            AnswerArguments(answers=("x",)),
            questions("Why?", "How?"),
            "not of the form Question=Label",
        ),
        (AnswerArguments(plan="maybe"), TOOL, "--plan: one of"),
    ],
)
def test_what_is_no_answer_is_refused(given: AnswerArguments, asked: AskOpened, error: str) -> None:
    with pytest.raises(UsageError, match=error.replace("[", r"\[")):
        to_answer(given, asked)


def test_the_list_says_what_an_answer_may_grant_and_change() -> None:
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}
    suggested = json.dumps({**request, "tool_use_id": "t", "permission_suggestions": [mode]})
    card = replace(TOOL, request=Raw(suggested.encode()), narrowest=("Bash(ls)",))
    assert offers_of(card) == [
        "--scope session, always, everywhere: Bash(ls)",
        "--take 1: accept all file edits for this session",
    ]
    assert offers_of(replace(TOOL, narrowest=())) == []
    assert offers_of(FORM) == []


class AlwaysKeyboard:
    """A person who answers «always», if that is offered."""

    def __init__(self) -> None:
        self.offered: list[str] = []

    async def decide(self, ask: AnyAsk, *, always: list[str] | None = None) -> Decision:
        assert isinstance(ask, ToolAsk)
        self.offered = always or []
        return ask.always() if always else ask.allow()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("narrowest", "answer"),
    [
        (("Bash(ls)",), AllowAnswer(scope=Scope.ALWAYS, rules=("Bash(ls)",))),
        ((), AllowAnswer()),
    ],
)
async def test_always_at_the_keyboard_grants_what_was_shown_and_takes_no_suggestion(
    narrowest: tuple[str, ...], answer: Answer
) -> None:
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}
    suggested = json.dumps({**request, "tool_use_id": "t", "permission_suggestions": [mode]})
    person = AlwaysKeyboard()
    card = replace(TOOL, request=Raw(suggested.encode()), narrowest=narrowest)
    assert await answer_at(cast("Keyboard", person), card) == answer
    assert person.offered == [f"allow {rule} in this project" for rule in narrowest]


@pytest.mark.parametrize(
    ("answer", "opened", "said"),
    [
        (AllowAnswer(), TOOL, "allowed once: "),
        (AllowAnswer(scope=Scope.SESSION), TOOL, "; granted (session): "),
        (AllowAnswer(scope=Scope.ALWAYS, rules=("Bash(ls:*)",)), TOOL, "(always): Bash(ls:*)"),
        (DenyAnswer(message="no"), TOOL, "denied: "),
        (SkipAnswer(), None, "answered: the question"),
    ],
)
def test_what_was_answered_is_confirmed(
    answer: Answer, opened: AskOpened | None, said: str
) -> None:
    assert said in confirmation_of(answer, opened)
