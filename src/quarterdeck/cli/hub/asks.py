"""`quarterdeck asks` and `answer`: list open questions, and answer without a dialogue.

Owns the step from the options of `answer` to an `Answer`. `keyboard_answers` has the dialogues.
"""

from __future__ import annotations

import time
from typing import Literal

import msgspec
from msgspec import Raw
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.spec import file_or_json
from quarterdeck.cli.hub.target import Target, connect, find_ask, find_session, short_asks
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json
from quarterdeck.cli.terminal.permission_text import in_words
from quarterdeck.cli.terminal.session_text import session_name
from quarterdeck.cli.terminal.text import age, call_text, marked_lines
from quarterdeck.client.blocking_client import BlockingClient
from quarterdeck.client.calls import HubRefused
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.marks import mark_invisible
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.policy.toml_values import seconds_of
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    AnswerAsk,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
    Scope,
    SkipAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.views import AskView
from quarterdeck.wire.requests import CanUseTool, decode_request
from quarterdeck.wire.tools import Question, one_line, parse_questions

PLAN_LINES = 12
PlanChoice = Literal["fresh", "auto", "manual", "revise", "reject"]
PLAN_CHOICES: tuple[PlanChoice, ...] = ("fresh", "auto", "manual", "revise", "reject")
VERBS = ("allow", "deny", "skip", "cancel")


class AnswerArguments(Value):
    """The command line of `answer`."""

    verb: str | None = None
    message: str = ""
    input: str | None = None
    scope: Scope = Scope.ONCE
    rules: tuple[str, ...] = ()
    duration: str | None = None
    updates: tuple[int, ...] = ()
    stop: bool = False
    plan: str | None = None
    answers: tuple[str, ...] = ()


_TOLD_BELOW = (AskKind.PLAN, AskKind.QUESTIONS)
"""Questions whose text follows their line."""


def run_asks(session: str | None, target: Target, *, json_output: bool) -> int:
    """List the open questions, oldest first."""
    client = connect(target)
    cards = client.asks(find_session(client, session) if session else None, ended=True)
    if json_output:
        print_json(cards)
        return Exit.SUCCESS
    if not cards:
        consoles.stderr().print(Text("no open questions"))
    console = consoles.stdout()
    now = time.time() * 1000
    ids = short_asks(card.opened.ask for card in cards)
    width = max(map(len, ids.values()), default=0)
    names = _names(client, cards)
    for card in cards:
        line = Text(f"{ids[card.opened.ask]:<{width}}", "cyan")
        line.append(f"  {names[card.session]}", "bold")
        line.append(f"  {card.opened.ask_kind.value}  {age(now - card.at)}", "dim")
        if card.opened.ask_kind not in _TOLD_BELOW:
            line.append(f"  {call_text(card.opened.tool, card.opened.title)}")
        console.print(line, soft_wrap=True)
        if card.ended:
            note = "its agent has ended; an answer resumes the session"
            console.print(Text(f"    {note}", "yellow"), soft_wrap=True)
        for more in _more(card.opened):
            console.print(Text(f"    {more}", "dim"), soft_wrap=True)
    return Exit.SUCCESS


def _names(client: BlockingClient, cards: tuple[AskView, ...]) -> dict[str, str]:
    """The names of the sessions that ask, by their ids; its folder's for one without a name."""
    names: dict[str, str] = {}
    for session in {card.session for card in cards}:
        try:
            names[session] = session_name(client.session(session))
        except HubRefused:
            names[session] = "(deleted)"
    return names


def _more(opened: AskOpened) -> list[str]:
    """What a person needs to answer, besides the title."""
    if opened.plan:
        lines, rest = marked_lines(opened.plan, PLAN_LINES)
        return [*lines, f"… {rest} more lines"] if rest else lines
    return [*(_question_line(question) for question in questions_of(opened)), *offers_of(opened)]


def offers_of(opened: AskOpened) -> list[str]:
    """What an answer may add: the rule of a grant, and the changes that the CLI suggests."""
    if opened.ask_kind is not AskKind.TOOL:
        return []
    rules = ", ".join(one_line(rule, 300) for rule in opened.narrowest)
    found = [f"--scope session, always, everywhere: {rules}"] if rules else []
    request = decode_request(opened.request)
    changes = in_words(request.suggestions) if isinstance(request, CanUseTool) else []
    return found + [f"--take {number}: {text}" for number, text in enumerate(changes, 1)]


def _question_line(question: Question) -> str:
    options = " | ".join(one_line(option.label, 80) for option in question.options)
    return f"{mark_invisible(question.question)} [{options}]"


def run_answer(ask: str, arguments: AnswerArguments, target: Target) -> int:
    """Answer a question."""
    client = connect(target)
    id_, card = find_ask(client, ask)
    answer = to_answer(arguments, card.opened if card else None)
    client.submit(AnswerAsk(ask=id_, answer=answer))
    consoles.stderr().print(Text(confirmation_of(answer, card.opened if card else None)))
    return Exit.SUCCESS


def confirmation_of(answer: Answer, opened: AskOpened | None) -> str:
    """What was answered to what, and what holds from now on."""
    about = call_text(opened.tool, opened.title) if opened is not None else "the question"
    match answer:
        case AllowAnswer(scope=Scope.ONCE):
            return f"allowed once: {about}"
        case AllowAnswer():
            rules = answer.rules or (opened.narrowest if opened is not None else ())
            granted = ", ".join(one_line(rule, 300) for rule in rules) or "no rule"
            return f"allowed: {about}; granted ({answer.scope.value}): {granted}"
        case DenyAnswer():
            return f"denied: {about}"
        case _:
            return f"answered: {about}"


def to_answer(arguments: AnswerArguments, opened: AskOpened | None) -> Answer:
    """The answer. `opened` is the question, if it is still open. Raises `UsageError`."""
    ways = [arguments.verb is not None, arguments.plan is not None, bool(arguments.answers)]
    if sum(ways) != 1:
        raise UsageError(f"give one of: {', '.join(VERBS)}, --plan, --answer")
    content = _input(arguments)
    if arguments.plan is not None:
        if arguments.plan not in PLAN_CHOICES:
            raise UsageError(f"--plan: one of {', '.join(PLAN_CHOICES)}")
        return PlanAnswer(choice=arguments.plan, feedback=arguments.message)
    if arguments.answers:
        return QuestionsAnswer(answers=_answers(arguments.answers, opened))
    if opened is not None and opened.ask_kind is AskKind.ELICITATION:
        actions: dict[str, Literal["accept", "decline", "cancel"]] = {
            "allow": "accept",
            "deny": "decline",
        }
        return ElicitationAnswer(
            action=actions.get(arguments.verb or "", "cancel"), content=content
        )
    match arguments.verb:
        case "allow":
            return _allow(arguments, content)
        case "deny":
            return DenyAnswer(message=arguments.message, stop=arguments.stop)
        case "skip":
            return SkipAnswer(message=arguments.message)
        case verb:
            raise UsageError(f"{verb!r} is not an answer to this question")


def _allow(arguments: AnswerArguments, content: Raw) -> AllowAnswer:
    seconds = None
    if arguments.duration is not None and (seconds := seconds_of(arguments.duration)) is None:
        raise UsageError("--for: a duration is required, as in 30m or 8h")
    if arguments.scope is Scope.ONCE and (arguments.rules or seconds is not None):
        raise UsageError("--rule and --for need --scope session, always or everywhere")
    return AllowAnswer(
        scope=arguments.scope,
        input=content,
        seconds=seconds,
        rules=arguments.rules,
        updates=tuple(number - 1 for number in arguments.updates),
    )


def _input(arguments: AnswerArguments) -> Raw:
    if arguments.input is None:
        return ABSENT
    if arguments.verb != "allow":
        raise UsageError("--input needs allow")
    data = file_or_json(arguments.input, "--input")
    try:
        members = msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.DecodeError as error:
        raise UsageError(f"--input: {error}") from error
    return Raw(msgspec.json.encode(members))


def questions_of(opened: AskOpened | None) -> tuple[Question, ...]:
    """The questions of an ask, if it has any."""
    if opened is None or opened.ask_kind is not AskKind.QUESTIONS:
        return ()
    request = decode_request(opened.request)
    found = parse_questions(request.input) if isinstance(request, CanUseTool) else None
    return found.questions if found else ()


def _answers(
    arguments: tuple[str, ...], opened: AskOpened | None
) -> dict[str, str | tuple[str, ...]]:
    """`Question=Label`, by the question's text or header; a single question needs no name."""
    known = questions_of(opened)
    found: dict[str, tuple[str, ...]] = {}
    for each in arguments:
        question, label = _split_answer(each, known)
        found[question] = (*found.get(question, ()), label)
    return {name: labels[0] if len(labels) == 1 else labels for name, labels in found.items()}


def _split_answer(arguments: str, known: tuple[Question, ...]) -> tuple[str, str]:
    for question in known:
        for name in (question.question, question.header):
            if name and arguments.startswith(f"{name}="):
                return question.question, arguments.removeprefix(f"{name}=")
    if len(known) == 1:
        return known[0].question, arguments
    name, equals, label = arguments.partition("=")
    if not equals or known:
        raise UsageError(f"--answer: {arguments!r} is not of the form Question=Label")
    return name, label
