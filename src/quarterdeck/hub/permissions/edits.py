"""An answer that allows a call with another input: the rules decide about that input.

A person was asked about one call and lets another one run in its place. Nothing else stands between
that input and the tool: the CLI does not show it to the hook again. So it is held against the rules
in force, with the name and the role of the person who answers. Pure; `gate` makes the question, and
`decisions.answers` checks the verdict here before an answer has any effect.
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, UsageError
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.hub.permissions.raw_answers import read_raw
from quarterdeck.policy.decide import Behavior, Verdict
from quarterdeck.protocol.commands import AllowAnswer, Answer, AnswerAsk, RawAnswer
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.roles import may_answer
from quarterdeck.wire.rawjson import dump, is_object, same_json
from quarterdeck.wire.requests import CanUseTool, decode_request

MOST_BYTES = 8 * 1024 * 1024
"""A larger input is refused: it is read, compared and decided about while the session waits."""


class Edit(Value):
    """What is to run in the place of what a question was about, and what the rules say of it."""

    input: Raw
    verdict: Verdict


def asked_call(opened: AskOpened) -> CanUseTool | None:
    """The call that a question is about; None if it is about something else."""
    request = decode_request(opened.request)
    return request if isinstance(request, CanUseTool) else None


def edited_call(opened: AskOpened, answer: Answer) -> CanUseTool | None:
    """The call as an answer wants it; None if that is the very call of the question.

    The tool is always that of the question. Raises `UsageError` for what is no input of a tool.
    """
    request = decode_request(opened.request)
    wanted = _wanted_input(opened, answer)
    if not wanted:
        return None
    if not isinstance(request, CanUseTool):
        raise UsageError("input: this question is not about a tool call")
    if len(bytes(wanted)) > MOST_BYTES:
        raise UsageError(f"input: at most {MOST_BYTES} bytes are taken")
    try:
        given = dump(wanted)
    except UsageError as error:
        raise UsageError(f"input: {error}") from error
    if not is_object(given):
        raise UsageError("input: must be a JSON object")
    if same_json(given, request.input):
        return None
    return CanUseTool(
        tool_name=request.tool_name,
        input=given,
        tool_use_id=request.tool_use_id,
        agent_id=request.agent_id,
    )


def _wanted_input(opened: AskOpened, answer: Answer) -> Raw:
    """The input that an answer gives. That of a plan or a question carries the answer itself."""
    match answer:
        case AllowAnswer(input=given):
            return given
        case RawAnswer(body=body) if opened.ask_kind is AskKind.TOOL:
            read = read_raw(body)
            return read.updated_input if read.behavior == "allow" else ABSENT
        case _:
            return ABSENT


def check_edit(verdict: Verdict, command: AnswerAsk) -> None:
    """Raise `Forbidden` unless this person may have it run."""
    if verdict.behavior is Behavior.ALLOW:
        return
    why = "; ".join(verdict.reasons)
    if verdict.behavior is Behavior.DENY:
        raise Forbidden(f"policy denies the edited input: {why}")
    if verdict.ruled and verdict.rule is None:
        # The decision itself failed: it is unknown who a rule wants to be asked.
        raise Forbidden(f"policy cannot read the edited input: {why}")
    people = verdict.ask_settings.answered_by
    if not may_answer(people, command.by, command.role):
        wanted = "; and ".join(" or ".join(each) for each in people)
        raise Forbidden(
            f"the rule {verdict.rule!r} wants an answer by {wanted} for the edited input: {why}"
        )
