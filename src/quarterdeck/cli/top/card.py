"""An open question as a card: its lines, and what each key answers. Pure.

Owns the step from an `AskView` to what a person reads and presses. The lines are those of the
dialogues in `terminal.keyboard`: nothing is cut, and invisible characters are marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Raw
from rich.text import Text

from quarterdeck.agent.asks import PlanAsk, QuestionsAsk, ToolAsk, to_ask
from quarterdeck.cli.terminal.keyboard import plan_card, tool_card
from quarterdeck.cli.terminal.permission_text import in_words
from quarterdeck.cli.terminal.text import marked_lines
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.coded_texts import with_texts
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
from quarterdeck.protocol.views import AskView
from quarterdeck.wire.requests import CanUseTool, Elicitation, decode_request
from quarterdeck.wire.tools import Question, one_line

MOST_LINES = 5000
"""Lines of an input that a card shows. Nothing with more can be allowed here."""
SCHEMA_LINES = 200

MakeAnswer = Callable[[str], Answer]


class Choice(Value):
    """What a key does: the answer, made from the text of the field if it opens one."""

    key: str
    label: str
    make: MakeAnswer
    field: str = ""
    """The label of the field that it opens; empty: it answers at once."""
    needed: bool = False
    """Whether the field must not be empty."""
    lasting: bool = False
    """It allows more than this one call: the key is pressed twice."""
    allows: bool = False
    """It lets something happen: the question must have been seen to its end."""


class Card(Value):
    """A question, to be shown and answered."""

    ask: str
    title: str
    lines: tuple[Text, ...]
    choices: tuple[Choice, ...]
    questions: tuple[Question, ...] = ()
    """Questions of the model: options are chosen by their numbers."""


def card_of(view: AskView) -> Card:
    """The card of a question. Never raises: one that cannot be read can only be denied."""
    request = decode_request(view.opened.request)
    match request:
        case CanUseTool():
            ask = to_ask(view.opened.request_id, request)
        case Elicitation():
            return _form(view, request)
        case _:
            return _make(view, "Question", [Text("The question could not be read.")], [_deny()])
    match ask:
        case ToolAsk():
            return _tool(view, ask)
        case PlanAsk():
            plan = msgspec.structs.replace(ask.plan, plan=view.opened.plan or ask.plan.plan)
            return _make(
                view, "Plan", _without_frame(plan_card(plan)[1:]), _plan_choices(view.opened.plan)
            )
        case QuestionsAsk():
            return _make(
                view,
                "Question",
                [],
                [Choice(key="k", label="skip all", make=lambda _: SkipAnswer())],
                ask.questions.questions,
            )


def _make(
    view: AskView,
    title: str,
    lines: list[Text],
    choices: list[Choice],
    questions: tuple[Question, ...] = (),
) -> Card:
    opened = view.opened
    reasons = with_texts(opened).reasons
    more = [Text(f"why you are asked: {one_line(reason, 300)}", "dim") for reason in reasons]
    if opened.wait is not None:
        then = one_line(opened.then, 40)
        more.append(Text(f"without an answer in {opened.wait:,.0f} s: {then}", "yellow"))
    if view.ended:
        more.append(Text("its agent has ended; an answer resumes the session", "yellow"))
    return Card(
        ask=opened.ask,
        title=title,
        lines=(*lines, *more),
        choices=tuple(choices),
        questions=questions,
    )


def _without_frame(lines: list[Text]) -> list[Text]:
    """Lines of a card of `keyboard`, without its frame."""
    return [line[2:] for line in lines]


# --- tools ------------------------------------------------------------------------------------


def _tool(view: AskView, ask: ToolAsk) -> Card:
    title, *framed = tool_card(ask, MOST_LINES)
    lines = _without_frame(framed)
    whole = len(lines) < MOST_LINES
    if not whole:
        lines.append(
            Text("It is too long to be shown here: use the web app to allow it.", "yellow")
        )
    allow = _allow_choices(view, ask) if whole else []
    return _make(view, title.plain.removeprefix("┌ "), lines, [*allow, _deny(), _stop()])


def _allow_choices(view: AskView, ask: ToolAsk) -> list[Choice]:
    rules = view.opened.narrowest
    choices = [Choice(key="a", label="allow once", make=lambda _: AllowAnswer(), allows=True)]
    if rules and view.opened.lasting:
        shown = ", ".join(one_line(rule, 300) for rule in rules)
        for key, scope, where in (
            ("s", Scope.SESSION, "in this session"),
            ("w", Scope.ALWAYS, "in this project, always"),
        ):
            choices.append(
                Choice(
                    key=key,
                    label=f"allow {shown} {where}",
                    make=_grant_answer(scope, rules),
                    lasting=True,
                    allows=True,
                )
            )
    hidden = ask.request.suppress_always_allow_rule
    for number, text in enumerate(() if hidden else in_words(ask.suggestions)[:9]):
        choices.append(
            Choice(
                key=str(number + 1),
                label=f"allow once, and {text}",
                make=_option_answer(number),
                lasting=True,
                allows=True,
            )
        )
    return choices


def _grant_answer(scope: Scope, rules: tuple[str, ...]) -> MakeAnswer:
    return lambda _: AllowAnswer(scope=scope, rules=rules)


def _option_answer(number: int) -> MakeAnswer:
    return lambda _: AllowAnswer(updates=(number,))


def _deny() -> Choice:
    return Choice(
        key="d",
        label="deny …",
        make=lambda text: DenyAnswer(message=text),
        field="Why not? The model reads it; it may be empty",
    )


def _stop() -> Choice:
    return Choice(
        key="x",
        label="deny, and stop the turn",
        make=lambda _: DenyAnswer(stop=True),
        lasting=True,
    )


# --- plans, forms and questions ---------------------------------------------------------------

_PLANS: tuple[tuple[str, Literal["manual", "auto", "fresh"], str], ...] = (
    ("y", "manual", "execute it here, and ask about every call"),
    ("e", "auto", "execute it here, and accept all file edits"),
    ("f", "fresh", "execute it in a new conversation, and accept all file edits"),
)


def _plan_choices(text: str | None) -> list[Choice]:
    # A new conversation needs the text of the plan, which some versions do not send.
    found = [
        Choice(
            key=key, label=label, make=_plan_answer(choice), lasting=choice != "manual", allows=True
        )
        for key, choice, label in _PLANS
        if text or choice != "fresh"
    ]
    revise = Choice(
        key="k",
        label="keep planning …",
        make=lambda text: PlanAnswer(choice="revise", feedback=text),
        field="What should be different?",
        needed=True,
    )
    reject = Choice(
        key="r",
        label="reject …",
        make=lambda text: PlanAnswer(choice="reject", feedback=text),
        field="Why? The model reads it; it may be empty. The turn ends",
    )
    return [*found, revise, reject]


def _plan_answer(choice: Literal["manual", "auto", "fresh"]) -> MakeAnswer:
    return lambda _: PlanAnswer(choice=choice)


def _form(view: AskView, request: Elicitation) -> Card:
    lines = [Text(line) for line in marked_lines(request.message)[0]]
    if request.url:
        lines.append(Text(f"to visit: {one_line(request.url, 2000)}"))
    if request.requested_schema:
        schema = msgspec.json.format(bytes(request.requested_schema), indent=2).decode()
        lines += [Text(line, "dim") for line in marked_lines(schema, SCHEMA_LINES)[0]]
    accept = Choice(
        key="y",
        label="accept …",
        make=_accept_answer,
        field="The form's values, as JSON",
        allows=True,
    )
    decline = Choice(key="n", label="decline", make=lambda _: ElicitationAnswer(action="decline"))
    cancel = Choice(key="c", label="cancel", make=lambda _: ElicitationAnswer(action="cancel"))
    server = one_line(request.mcp_server_name, 80)
    return _make(view, f"Form of the MCP server {server}", lines, [accept, decline, cancel])


def _accept_answer(text: str) -> Answer:
    try:
        members = msgspec.json.decode(text.strip() or "{}", type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(f"the values are not a JSON object: {error}") from error
    return ElicitationAnswer(action="accept", content=Raw(msgspec.json.encode(members)))


class Replies:
    """The answers to the model's questions, while a person chooses them."""

    def __init__(self, questions: tuple[Question, ...]) -> None:
        self.questions = questions
        self.at = 0
        self._chosen: dict[int, list[int]] = {}
        self._own: dict[int, str] = {}

    @property
    def current(self) -> Question:
        """The question that numbers choose for."""
        return self.questions[self.at]

    @property
    def complete(self) -> bool:
        """Whether each question has an answer."""
        return all(self._reply(number) for number in range(len(self.questions)))

    def move(self, step: int) -> None:
        """Go to another question."""
        self.at = min(max(0, self.at + step), len(self.questions) - 1)

    def choose(self, option: int) -> bool:
        """Choose an option of the current question, or take the choice back; counted from 1."""
        if not 1 <= option <= len(self.current.options):
            return False
        chosen = self._chosen.get(self.at, [])
        self._own.pop(self.at, None)
        if option in chosen:
            self._chosen[self.at] = [each for each in chosen if each != option]
        else:
            self._chosen[self.at] = [*chosen, option] if self.current.multi_select else [option]
        return True

    def write(self, text: str) -> None:
        """Answer the current question in one's own words."""
        self._chosen.pop(self.at, None)
        self._own[self.at] = text

    def answer(self) -> QuestionsAnswer:
        """The answers to the questions that have one."""
        replies = {q.question: self._reply(n) for n, q in enumerate(self.questions)}
        return QuestionsAnswer(answers={name: given for name, given in replies.items() if given})

    def _reply(self, number: int) -> str | tuple[str, ...]:
        if own := self._own.get(number, ""):
            return own
        question = self.questions[number]
        labels = [question.options[n - 1].label for n in sorted(self._chosen.get(number, []))]
        return tuple(labels) if question.multi_select else (labels[0] if labels else "")

    def lines(self) -> list[Text]:
        """The questions, their options, and what is chosen."""
        found: list[Text] = []
        for number, question in enumerate(self.questions):
            here = number == self.at
            mark = "▶ " if here and len(self.questions) > 1 else ""
            for line in marked_lines(question.question)[0]:
                found.append(Text(f"{mark}{line}", "bold"))
                mark = ""
            for count, option in enumerate(question.options, 1):
                taken = count in self._chosen.get(number, [])
                sign = ("[x]" if taken else "[ ]") if question.multi_select else "(•)"
                sign = sign if taken or question.multi_select else "( )"
                row = Text.assemble(
                    (f"  {count} " if here else "    ", "bold cyan"),
                    f"{sign} {one_line(option.label, 300)}",
                )
                if option.description:
                    row.append(f"  {one_line(option.description, 500)}", "dim")
                found.append(row)
            if own := self._own.get(number):
                found.append(Text(f"    (•) {one_line(own, 500)}"))
        return found
