"""`quarterdeck asks` and `answer`: open questions, listed, and answered without a dialogue.

Owns the step from the options of `answer` to an `Answer`. The dialogue at the keyboard is
`answering`'s.
"""

from __future__ import annotations

import time
from typing import Literal

import msgspec
from msgspec import Raw
from rich.text import Text

from quarterdeck.cli import console as consoles
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.output import print_json
from quarterdeck.cli.hub.spec import file_or_json
from quarterdeck.cli.hub.target import Target, connect, find_ask, find_session
from quarterdeck.cli.text import age, marked_lines
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.marks import marked
from quarterdeck.domain.structs import ABSENT, Value
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
from quarterdeck.wire.requests import CanUseTool, decode_request
from quarterdeck.wire.tools import Question, one_line, parse_questions

PLAN_LINES = 12
PlanChoice = Literal["fresh", "auto", "manual", "revise", "reject"]
PLAN_CHOICES: tuple[PlanChoice, ...] = ("fresh", "auto", "manual", "revise", "reject")
VERBS = ("allow", "deny", "skip", "cancel")


class Given(Value):
    """What the command line of `answer` says."""

    verb: str | None = None
    message: str = ""
    input: str | None = None
    scope: Scope = Scope.ONCE
    stop: bool = False
    plan: str | None = None
    answers: tuple[str, ...] = ()


def run_asks(session: str | None, target: Target, *, json_output: bool) -> int:
    """List the open questions, oldest first."""
    client = connect(target)
    cards = client.asks(find_session(client, session) if session else None)
    if json_output:
        print_json(cards)
        return Exit.SUCCESS
    if not cards:
        consoles.stderr().print(Text("no open questions"))
    console = consoles.stdout()
    now = time.time() * 1000
    for card in cards:
        line = Text.assemble((card.opened.ask, "cyan"), f"  {card.opened.ask_kind.value:<9}")
        line.append(f"  {age(now - card.at):>6}", "dim")
        line.append(f"  {one_line(card.opened.tool, 40)}: {one_line(card.opened.title, 300)}")
        console.print(line, soft_wrap=True)
        for more in _more(card.opened):
            console.print(Text(f"    {more}", "dim"), soft_wrap=True)
    return Exit.SUCCESS


def _more(opened: AskOpened) -> list[str]:
    """What a person must know to answer and the title does not say."""
    if opened.plan:
        lines, rest = marked_lines(opened.plan, PLAN_LINES)
        return [*lines, f"… {rest} more lines"] if rest else lines
    return [_asked(question) for question in questions_of(opened)]


def _asked(question: Question) -> str:
    options = " | ".join(one_line(option.label, 80) for option in question.options)
    return f"{marked(question.question)} [{options}]"


def run_answer(ask: str, given: Given, target: Target) -> int:
    """Answer a question."""
    client = connect(target)
    id_, card = find_ask(client, ask)
    client.answer(id_, to_answer(given, card.opened if card else None))
    return Exit.SUCCESS


def to_answer(given: Given, opened: AskOpened | None) -> Answer:
    """The answer. `opened` is the question, where it is open. Raises `UsageError`."""
    ways = [given.verb is not None, given.plan is not None, bool(given.answers)]
    if sum(ways) != 1:
        raise UsageError(f"say one of: {', '.join(VERBS)}, --plan, --answer")
    content = _input(given)
    if given.plan is not None:
        if given.plan not in PLAN_CHOICES:
            raise UsageError(f"--plan: one of {', '.join(PLAN_CHOICES)}")
        return PlanAnswer(choice=given.plan, feedback=given.message)
    if given.answers:
        return QuestionsAnswer(answers=_answers(given.answers, opened))
    if opened is not None and opened.ask_kind is AskKind.ELICITATION:
        actions: dict[str, Literal["accept", "decline", "cancel"]] = {
            "allow": "accept",
            "deny": "decline",
        }
        return ElicitationAnswer(action=actions.get(given.verb or "", "cancel"), content=content)
    match given.verb:
        case "allow":
            return AllowAnswer(scope=given.scope, input=content)
        case "deny":
            return DenyAnswer(message=given.message, stop=given.stop)
        case "skip":
            return SkipAnswer(message=given.message)
        case verb:
            raise UsageError(f"{verb!r} is no answer to this question")


def _input(given: Given) -> Raw:
    if given.input is None:
        return ABSENT
    if given.verb != "allow":
        raise UsageError("--input goes with allow")
    data = file_or_json(given.input, "--input")
    try:
        members = msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.DecodeError as error:
        raise UsageError(f"--input: {error}") from error
    return Raw(msgspec.json.encode(members))


def questions_of(opened: AskOpened | None) -> tuple[Question, ...]:
    """The questions of a card, if it has any."""
    if opened is None or opened.ask_kind is not AskKind.QUESTIONS:
        return ()
    request = decode_request(opened.request)
    found = parse_questions(request.input) if isinstance(request, CanUseTool) else None
    return found.questions if found else ()


def _answers(given: tuple[str, ...], opened: AskOpened | None) -> dict[str, str | tuple[str, ...]]:
    """`Question=Label`, by the question's text or its header; one question needs no name."""
    known = questions_of(opened)
    found: dict[str, tuple[str, ...]] = {}
    for each in given:
        question, label = _named(each, known)
        found[question] = (*found.get(question, ()), label)
    return {name: labels[0] if len(labels) == 1 else labels for name, labels in found.items()}


def _named(given: str, known: tuple[Question, ...]) -> tuple[str, str]:
    for question in known:
        for name in (question.question, question.header):
            if name and given.startswith(f"{name}="):
                return question.question, given.removeprefix(f"{name}=")
    if len(known) == 1:
        return known[0].question, given
    name, equals, label = given.partition("=")
    if not equals or known:
        raise UsageError(f"--answer: {given!r} is not of the form Question=Label")
    return name, label
