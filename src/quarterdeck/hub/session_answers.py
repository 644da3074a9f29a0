"""Answers of people to a session's questions, in time and late.

Owns what an answer does: it goes to the CLI that waits for it, is kept as a grant if it is for
longer than once, and may switch the mode or begin a new conversation. A question whose process is
gone can still be answered: the session is resumed and gets the answer as a prompt. The wire format
of an answer is in `permissions.answers`.
"""

from __future__ import annotations

from uuid import uuid4

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound, UsageError
from quarterdeck.hub.permissions import deadlines
from quarterdeck.hub.permissions.answers import late_prompt
from quarterdeck.hub.permissions.context import CallQuestion
from quarterdeck.hub.permissions.edits import Edit, asked_call, check_edit, edited_call
from quarterdeck.hub.permissions.gate import PermissionGate
from quarterdeck.hub.permissions.lasting import check_lasting, grant_of, grant_text
from quarterdeck.hub.permissions.modes import (
    ACCEPT_EDITS,
    DEFAULT,
    chosen_mode,
    resumed_spec,
    with_mode,
)
from quarterdeck.hub.permissions.raw_answers import check_raw, read_raw
from quarterdeck.hub.session import Session
from quarterdeck.hub.session_requests import stop
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    Event,
    PromptQueued,
    SpecChanged,
    StartAfresh,
    Switched,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec


async def answer(session: Session, command: cmd.AnswerAsk) -> Outcome:
    """Answer a question: the first answer wins."""
    async with session.in_order():
        card = session.view.asks.get(command.ask)
        if card is None or session.run is None:
            return await _answer_late(session, command)
        now = session.supervisor.now
        opened = session.run.original(card.opened)
        edit: Edit | None = None
        if (call := edited_call(opened, command.answer)) is not None:
            question = session.run.edit_question(call, opened, now)
            edit = await _edit(session, question, session.run.spec, command)
        reply = session.run.reply_to(opened, command.answer, edit)
        json = Raw(msgspec.json.encode(command.answer))
        if (call := call or asked_call(opened)) is not None:
            question = session.run.edit_question(call, opened, now)
            granted = await _grant(session, opened, question, edit, command)
            reply = replace(reply, reasons=(*reply.reasons, *granted))
        events: list[Event] = []
        session.run.answer(opened, reply, command.by, json, now)
        if reply.fresh is not None:
            afresh = StartAfresh(run=session.run.run, by=command.by)
            events += [*_to_implement(session.view.spec, reply.fresh, command.by), afresh]
        await session.append(events)
    if reply.fresh is not None:
        await stop(session, cmd.StopSession(session=session.id, by=command.by))
    return Outcome(session=session.id, ask=command.ask)


async def check_answerer(session: Session, command: cmd.AnswerAsk) -> None:
    """Raise `Forbidden` unless this person may answer the question."""
    if (card := session.view.asks.get(command.ask)) is not None:
        deadlines.check_answerer(card.opened, command)
    elif (record := await session.journal.find_ask(command.ask)) is not None:
        deadlines.check_answerer(record.ask.opened, command)


async def _answer_late(session: Session, command: cmd.AnswerAsk) -> Outcome:
    """Answer a question that is not open: another person was first, or its process is gone.

    In the second case the session is resumed, and gets the answer as a prompt.
    """
    record = await session.journal.find_ask(command.ask)
    if record is None:
        raise NotFound("question", command.ask)
    match record.settled.event if record.settled else None:
        case AskAnswered(by=by):
            raise Conflict("already_answered", f"already answered by {by}")
        case AskWithdrawn(reason=reason) if session.run is not None:
            raise Conflict("withdrawn", f"the question was withdrawn: {reason}")
        case _ if session.run is not None:
            raise Conflict("not_open", "the question went away with its process")
        case _ if record.settled is not None:
            await _check_unanswered(session, command.ask, record.settled.position)
        case _:
            pass
    opened = record.ask.opened
    edit = await _edited_late(session, opened, command)
    if (call := asked_call(opened)) is not None:
        spec = resumed_spec(session.view.spec, session.view.mode)
        mode = chosen_mode(spec) or DEFAULT
        question = PermissionGate.of(spec).edit_question(call, mode, session.supervisor.now)
        await _grant(session, opened, question, edit, command)
    answered = AskAnswered(
        ask=opened.ask,
        by=command.by,
        answer=Raw(msgspec.json.encode(command.answer)),
        allowed=_allows(command.answer),
    )
    match command.answer:
        case cmd.PlanAnswer(choice="fresh") if opened.plan:
            changed, queued = _to_implement(session.view.spec, opened.plan, command.by)
            await session.start(Origin(), answered, changed, queued)
        case _:
            content = Raw(msgspec.json.encode(late_prompt(opened, command.answer, edit)))
            queued = PromptQueued(prompt=str(uuid4()), content=content, by=command.by)
            switches = _in_mode_of(session.view.spec, command.answer, command.by)
            origin = Origin(cli_session=session.view.cli_session)
            await session.start(origin, answered, *switches, queued)
    return Outcome(session=session.id, ask=command.ask, prompt=queued.prompt)


def _allows(answer: cmd.Answer) -> bool:
    if isinstance(answer, cmd.RawAnswer):
        return read_raw(answer.body).behavior == "allow"
    return not isinstance(answer, cmd.DenyAnswer | cmd.SkipAnswer)


async def _edited_late(session: Session, opened: AskOpened, command: cmd.AnswerAsk) -> Edit | None:
    """The other input that a late answer tells the session of. Raises `Forbidden`."""
    call = edited_call(opened, command.answer)
    if call is None:
        return None
    spec = resumed_spec(session.view.spec, session.view.mode)
    mode = chosen_mode(spec) or DEFAULT
    question = PermissionGate.of(spec).edit_question(call, mode, session.supervisor.now)
    return await _edit(session, question, spec, command)


async def _edit(
    session: Session, question: CallQuestion, spec: SessionSpec, command: cmd.AnswerAsk
) -> Edit:
    """The call that runs in place of the one asked about. Raises `Forbidden`."""
    verdict = (await session.rule(question, spec)).verdict
    check_edit(verdict, command)
    return Edit(input=verdict.input or question.input, verdict=verdict)


def _in_mode_of(spec: SessionSpec, answer: cmd.Answer, by: str) -> list[Event]:
    """What puts the session into the mode in which an approved plan is to be carried out."""
    match answer:
        case cmd.PlanAnswer(choice="auto" | "fresh"):
            mode = ACCEPT_EDITS
        case cmd.PlanAnswer(choice="manual"):
            mode = DEFAULT
        case _:
            return []
    spec = with_mode(spec, mode, asked_for=False)
    return [SpecChanged(spec=spec, by=by), Switched(mode=mode, by=by)]


async def _check_unanswered(session: Session, ask: str, position: int) -> None:
    """Raise `Conflict` if a question was answered after its process had ended."""
    while page := await session.journal.audit(session=session.id, after=position):
        position = page[-1].position
        for stored in page:
            if isinstance(stored.event, AskAnswered) and stored.event.ask == ask:
                raise Conflict("already_answered", f"already answered by {stored.event.by}")


def _to_implement(spec: SessionSpec, plan: str, by: str) -> tuple[SpecChanged, PromptQueued]:
    """What makes a new conversation implement a plan."""
    spec = with_mode(spec, ACCEPT_EDITS, asked_for=False)
    content = Raw(msgspec.json.encode(f"Implement the following plan:\n\n{plan}"))
    queued = PromptQueued(prompt=str(uuid4()), content=content, by=by)
    return SpecChanged(spec=spec, by=by), queued


async def _grant(
    session: Session,
    opened: AskOpened,
    question: CallQuestion,
    edit: Edit | None,
    command: cmd.AnswerAsk,
) -> tuple[str, ...]:
    """Store the grant of an answer that allows more than one call; gives what it says of that.

    Raises `UsageError` if its rules do not allow the call.
    """
    answer = command.answer
    if isinstance(answer, cmd.RawAnswer):
        check_raw(answer.body, command.role)
    if not isinstance(answer, cmd.AllowAnswer):
        return ()
    check_lasting(answer, command.role)
    if answer.scope is cmd.Scope.ONCE:
        return ()
    if edit is not None:
        question = replace(question, input=edit.input)
    rules = answer.rules or await session.policy_context.narrowest(question)
    if answer.rules and not await session.policy_context.is_allowed_by(rules, question):
        raise UsageError(f"rules: {', '.join(rules)} would not allow this call")
    grant = grant_of(
        answer,
        rules,
        session=session.id,
        spec=session.view.spec,
        by=command.by,
        now=session.supervisor.now,
        ask=opened.ask,
    )
    return (grant_text(await session.policies.grant(grant)),)
