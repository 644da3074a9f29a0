"""What a press on a button or a reply means for an open question. Pure.

The result is one step: an answer for the hub, a change of the draft, a request to type something,
or nothing. An action that does not fit the question does nothing: old buttons may be pressed again,
and callback data may be made up.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.fronts.telegram.asks import (
    OUTLINE,
    Draft,
    form_of,
    questions_of,
)
from quarterdeck.fronts.telegram.details import input_of
from quarterdeck.fronts.telegram.forms import Field, value_of
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
from quarterdeck.wire.tools import Question

Purpose = Literal["card", "edit", "reason", "feedback"]
"""What a reply is for: the question itself, or what a button asked for."""

LONGEST_REPLY = 20_000


class Submit(Value):
    """Send this answer."""

    answer: Answer
    toast: str


class Redraw(Value):
    """The draft has changed: show the question again."""

    draft: Draft
    toast: str = ""


class Type(Value):
    """The person is to type something, as a reply to a message with this text."""

    purpose: Purpose
    text: str
    toast: str = ""


class Show(Value):
    """Send the details."""

    toast: str = "It is on its way."


class Nothing(Value):
    """The action does not fit."""

    toast: str


Step = Submit | Redraw | Type | Show | Nothing

_STALE = Nothing(toast="This button is not valid any more.")


def press(opened: AskOpened, draft: Draft, action: str, arg: str) -> Step:
    """What a press on a button means."""
    match opened.ask_kind:
        case AskKind.TOOL:
            return _press_tool(opened, action)
        case AskKind.PLAN:
            return _press_plan(opened, action, arg)
        case AskKind.QUESTIONS:
            return _press_question(opened, draft, action, arg)
        case AskKind.ELICITATION:
            return _press_form(opened, draft, action, arg)


def reply(opened: AskOpened, draft: Draft, purpose: Purpose, text: str) -> Step:
    """What a reply means. Raises `UsageError` for a value that does not fit."""
    text = text.strip()
    if not text:
        raise UsageError("there is no text in the reply")
    if len(text) > LONGEST_REPLY:
        raise UsageError(f"at most {LONGEST_REPLY} characters are wanted")
    match opened.ask_kind:
        case AskKind.TOOL if purpose == "edit":
            return Submit(answer=AllowAnswer(input=_edited_input(opened, text)), toast="Edited")
        case AskKind.TOOL:
            return Submit(answer=DenyAnswer(message=text), toast="Denied")
        case AskKind.PLAN:
            return Submit(answer=PlanAnswer(choice="revise", feedback=text), toast="Sent")
        case AskKind.QUESTIONS:
            questions = questions_of(opened)
            if draft.at >= len(questions):
                return _STALE
            return _answer_step(questions, draft, text)
        case AskKind.ELICITATION:
            fields = form_of(opened)
            if draft.at >= len(fields):
                return _STALE
            return _fill_step(fields, draft, value_of(fields[draft.at], text))


# --- tools and plans -----------------------------------------------------------------------------


def _press_tool(opened: AskOpened, action: str) -> Step:
    rules = opened.narrowest if opened.lasting else ()
    match action:
        case "allow":
            return Submit(answer=AllowAnswer(), toast="Allow: sent")
        case "deny":
            return Submit(answer=DenyAnswer(), toast="Deny: sent")
        case "stop":
            return Submit(answer=DenyAnswer(stop=True), toast="Deny and stop: sent")
        case "session" if rules:
            answer = AllowAnswer(scope=Scope.SESSION, rules=rules)
            return Submit(answer=answer, toast="For the session: sent")
        case "always" if rules:
            answer = AllowAnswer(scope=Scope.ALWAYS, rules=rules)
            return Submit(answer=answer, toast="Always: sent")
        case "edit":
            what = "command" if opened.tool == "Bash" else "input, as a JSON object,"
            text = f"Reply with the {what} that is to run instead."
            return Type(purpose="edit", text=text, toast="Reply with it")
        case "reason":
            text = "Reply with the reason; the agent reads it."
            return Type(purpose="reason", text=text, toast="Reply with it")
        case "show":
            return Show()
        case _:
            return _STALE


def _edited_input(opened: AskOpened, text: str) -> Raw:
    """The input that runs instead. Raises `UsageError`."""
    given = input_of(opened)
    if opened.tool == "Bash" and "command" in given:
        given["command"] = Raw(msgspec.json.encode(text))
        return Raw(msgspec.json.encode(given))
    try:
        changed = msgspec.json.decode(text, type=dict[str, Raw])
    except DECODE_ERRORS as error:
        raise UsageError(f"a JSON object is wanted: {error}") from error
    return Raw(msgspec.json.encode(changed))


def _press_plan(opened: AskOpened, action: str, arg: str) -> Step:
    match action, arg:
        case "plan", "auto" | "manual" | "reject":
            return Submit(answer=PlanAnswer(choice=arg), toast="Sent")
        case "plan", "fresh" if opened.plan:
            return Submit(answer=PlanAnswer(choice="fresh"), toast="Sent")
        case "outline", _:
            answer = PlanAnswer(choice="revise", feedback=OUTLINE)
            return Submit(answer=answer, toast="Outlining plan…")
        case "feedback", _:
            text = "Reply with what to change in the plan."
            return Type(purpose="feedback", text=text, toast="Reply with it")
        case "show", _:
            return Show()
        case _:
            return _STALE


# --- questions -----------------------------------------------------------------------------------


def _press_question(opened: AskOpened, draft: Draft, action: str, arg: str) -> Step:
    questions = questions_of(opened)
    at, number = _numbers(arg)
    if at != draft.at or at >= len(questions):
        return _STALE
    question = questions[at]
    match action:
        case "option" if number is not None and number < len(question.options):
            if question.multi_select:
                return Redraw(draft=_toggle(draft, number))
            return _answer_step(questions, draft, question.options[number].label)
        case "chosen" if question.multi_select:
            if not draft.marked:
                return Nothing(toast="Choose an option, or skip the question.")
            labels = tuple(
                option.label
                for place, option in enumerate(question.options)
                if place in draft.marked
            )
            return _answer_step(questions, draft, labels)
        case "next":
            return _answer_step(questions, draft, None)
        case "rest":
            return _submit_questions(draft)
        case _:
            return _STALE


def _answer_step(
    questions: tuple[Question, ...], draft: Draft, answer: str | tuple[str, ...] | None
) -> Step:
    answers = dict(draft.answers)
    if answer is not None:
        answers[questions[draft.at].question] = answer
    draft = Draft(at=draft.at + 1, answers=answers)
    if draft.at >= len(questions):
        return _submit_questions(draft)
    return Redraw(draft=draft)


def _submit_questions(draft: Draft) -> Submit:
    if not draft.answers:
        return Submit(answer=SkipAnswer(), toast="Skipped")
    return Submit(answer=QuestionsAnswer(answers=draft.answers), toast="Sent")


def _toggle(draft: Draft, number: int) -> Draft:
    marked = set(draft.marked) ^ {number}
    return replace(draft, marked=tuple(sorted(marked)))


def _numbers(arg: str) -> tuple[int, int | None]:
    first, _, second = arg.partition(".")
    if not first.isdecimal() or (second and not second.isdecimal()) or len(arg) > 10:
        return -1, None
    return int(first), int(second) if second else None


# --- forms ---------------------------------------------------------------------------------------


def _press_form(opened: AskOpened, draft: Draft, action: str, arg: str) -> Step:
    fields = form_of(opened)
    match action, arg:
        case "form", "decline" | "cancel":
            return Submit(answer=ElicitationAnswer(action=arg), toast="Sent")
        case "form", "again":
            return Redraw(draft=Draft())
        case "form", "accept" if draft.at >= len(fields):
            content = Raw(msgspec.json.encode(draft.form))
            return Submit(answer=ElicitationAnswer(action="accept", content=content), toast="Sent")
        case _:
            pass
    at, number = _numbers(arg)
    if at != draft.at or at >= len(fields):
        return _STALE
    field = fields[at]
    match action:
        case "option" if number is not None and number < len(field.choices):
            if field.kind == "choices":
                return Redraw(draft=_toggle(draft, number))
            return _fill_step(fields, draft, value_of(field, field.choices[number].value))
        case "chosen" if field.kind == "choices":
            values = [field.choices[number].value for number in draft.marked]
            return _fill_step(fields, draft, Raw(msgspec.json.encode(values)))
        case "next" if not field.required:
            return _fill_step(fields, draft, None)
        case _:
            return _STALE


def _fill_step(fields: tuple[Field, ...], draft: Draft, value: Raw | None) -> Step:
    form = dict(draft.form)
    if value is not None:
        form[fields[draft.at].name] = value
    return Redraw(draft=Draft(at=draft.at + 1, form=form))
