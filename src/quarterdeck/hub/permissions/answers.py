"""What the CLI takes for a person's answer.

Turns an answer in our words (`protocol.commands`) into the body of a control response, for the very
version at the other end. Pure; `run` sends what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from quarterdeck.agent.asks import (
    Allow,
    AnyAsk,
    Decision,
    Deny,
    PlanAsk,
    QuestionsAsk,
    ToolAsk,
    to_ask,
    to_result,
)
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.hub.permissions.edits import Edit
from quarterdeck.hub.permissions.lasting_answers import chosen_updates, update_text
from quarterdeck.hub.permissions.raw_answers import raw_decision, read_raw
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
    RawAnswer,
    SkipAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.wire import answers as wire
from quarterdeck.wire.permissions import PermissionMode, suggestions
from quarterdeck.wire.requests import CanUseTool, decode_request
from quarterdeck.wire.versions import Version


class Reply(Value):
    """What goes to the CLI, and what it means. `fresh`: this plan is to be done in a new run."""

    body: Any
    allowed: bool
    coded: tuple[CodedText, ...]
    """What was answered, for the audit log."""
    fresh: str | None = None
    edit: Edit | None = None
    """What runs instead of what the question was about."""


def reply_to(
    opened: AskOpened,
    answer: Answer,
    *,
    version: Version | None,
    bypass_allowed: bool,
    edit: Edit | None = None,
) -> Reply:
    """The reply for an answer. Raises `UsageError` for an answer that does not fit its question.

    Of another input than the question's only that of `edit` goes to the CLI: it has been decided.
    """
    if isinstance(answer, AllowAnswer):
        answer = msgspec.structs.replace(answer, input=ABSENT if edit is None else edit.input)
    if opened.ask_kind is AskKind.ELICITATION:
        return _elicitation(opened, answer)
    request = decode_request(opened.request)
    if not isinstance(request, CanUseTool):
        raise UsageError(f"the question {opened.ask} cannot be read any more")
    ask = to_ask(opened.request_id, request)
    if isinstance(answer, RawAnswer):
        decision, reason = raw_decision(ask, answer.body, None if edit is None else edit.input)
    else:
        decision, reason = _decision(ask, answer)
    fresh = None
    if isinstance(answer, PlanAnswer) and answer.choice == "fresh":
        fresh = opened.plan
        if not fresh:
            raise UsageError("this version of the CLI does not send the plan; choose another way")
    body = to_result(ask, decision, version=version, bypass_allowed=bypass_allowed)
    return Reply(
        body=body,
        allowed=isinstance(decision, Allow) or fresh is not None,
        coded=(reason, *_changes(ask, body)),
        fresh=fresh,
        edit=edit,
    )


def _changes(ask: AnyAsk, body: wire.PermissionResult) -> Iterator[CodedText]:
    """What the CLI is told to change, besides allowing the call. A plan's reason tells its mode."""
    if isinstance(ask, ToolAsk) and isinstance(body, wire.AllowResult):
        for update in suggestions(body.updates_json or ()):
            yield CodedText(code=TextCode.CLI_CHANGES, detail=update_text(update))


def _decision(ask: AnyAsk, answer: Answer) -> tuple[Decision, CodedText]:
    match ask, answer:
        case _, DenyAnswer(message=message, stop=stop):
            denied = CodedText(code=TextCode.ANSWER_DENIED, detail=message)
            return Deny(message or Deny().message, stop), denied
        case QuestionsAsk(), QuestionsAnswer(answers=answers, notes=notes):
            return ask.answer(answers, notes=notes), CodedText(code=TextCode.ANSWER_GIVEN)
        case QuestionsAsk(), SkipAnswer(message=message):
            skipped = CodedText(code=TextCode.ANSWER_SKIPPED)
            return (ask.skip(message) if message else ask.skip()), skipped
        case PlanAsk(), PlanAnswer():
            return _plan(ask, answer)
        case ToolAsk(), AllowAnswer():
            code = TextCode.ANSWER_EDITED if answer.input else TextCode.ANSWER_ALLOWED
            return _allow(ask, answer), CodedText(code=code, name=answer.scope.value)
        case _:
            raise UsageError(
                f"{type(answer).__name__} is no answer to a question about {ask.tool_name}"
            )


def _allow(ask: ToolAsk, answer: AllowAnswer) -> Allow:
    """The allowance. What holds for longer is a grant of ours: the CLI hears of this call only, and
    of the changes that were chosen.
    """
    updates = chosen_updates(ask.suggestions, answer.updates)
    return Allow(input=answer.input or None, updates=updates)


_PLANS = {
    "fresh": TextCode.PLAN_FRESH,
    "auto": TextCode.PLAN_AUTO,
    "manual": TextCode.PLAN_MANUAL,
    "revise": TextCode.PLAN_REVISE,
    "reject": TextCode.PLAN_REJECTED,
}


def _plan(ask: PlanAsk, answer: PlanAnswer) -> tuple[Decision, CodedText]:
    said = CodedText(code=_PLANS[answer.choice])
    match answer.choice:
        case "fresh":
            message = "The user will implement the plan in a new conversation."
            return Deny(message, interrupt=True), said
        case "auto":
            return ask.approve(PermissionMode.ACCEPT_EDITS), said
        case "manual":
            return ask.approve(PermissionMode.DEFAULT), said
        case "revise":
            if not answer.feedback:
                raise UsageError("feedback: say what the plan lacks")
            return ask.revise(answer.feedback), said
        case "reject":
            return (ask.reject(answer.feedback) if answer.feedback else ask.reject()), said


def _form(action: str) -> CodedText:
    return CodedText(code=TextCode.FORM_ANSWERED, name=action)


def _elicitation(opened: AskOpened, answer: Answer) -> Reply:
    match answer:
        case ElicitationAnswer(action=action, content=content):
            body = wire.ElicitationAnswer(action=wire.ElicitationAction(action), content=content)
            return Reply(body=body, allowed=action == "accept", coded=(_form(action),))
        case DenyAnswer() | SkipAnswer():
            body = wire.ElicitationAnswer(action=wire.ElicitationAction.DECLINE)
            return Reply(body=body, allowed=False, coded=(_form("decline"),))
        case _:
            raise UsageError(
                f"{type(answer).__name__} is no answer to what the server {opened.tool} asks"
            )


def late_prompt(opened: AskOpened, answer: Answer, edit: Edit | None = None) -> str:
    """What to tell a session whose question died with its process, when it is answered at last."""
    about = f"Before the session was interrupted you asked about {opened.tool}: {opened.title}."
    match answer:
        case AllowAnswer() if edit is not None:
            given = bytes(edit.input).decode()
            return f"{about} The user allows it with this input instead: {given}"
        case AllowAnswer():
            return f"{about} The user allows it. Continue."
        case DenyAnswer(message=message) | SkipAnswer(message=message):
            return f"{about} The user says no. {message}".rstrip()
        case PlanAnswer(choice="revise", feedback=feedback):
            return f"The user wants your plan revised: {feedback}"
        case PlanAnswer(choice="reject"):
            return f"The user rejected your plan. {answer.feedback}".rstrip()
        case PlanAnswer():
            return f"The user approved your plan. Implement it:\n\n{opened.plan or opened.title}"
        case QuestionsAnswer(answers=answers):
            list_ = "\n".join(f"- {question} {given}" for question, given in answers.items())
            return f"The user has answered your questions:\n{list_}"
        case ElicitationAnswer(action=action):
            return f"{about} The user's answer: {action}."
        case RawAnswer(body=body):
            read = read_raw(body)
            if read.behavior == "deny":
                return f"{about} The user says no. {read.message}".rstrip()
            given = bytes(read.updated_input).decode()
            return f"{about} The user allows it{f' with this input: {given}' if given else ''}."
