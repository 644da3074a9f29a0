"""What follows from an answer to a question, in time or late. Pure.

Owns what an answer does: it goes to the CLI that waits for it, may grant more than one call, and
may switch the mode or begin a new conversation. A question whose process is gone can still be
answered: the session is resumed and gets the answer as a prompt. The wire format of an answer is in
`permissions.answers`. What an answer grants is stored before the CLI is answered: then the decision
is made in two steps (`GiveAnswer` is the second).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound, UsageError
from quarterdeck.domain.ids import derived_uuid
from quarterdeck.hub.decisions.base import (
    Decision,
    Done,
    Facts,
    State,
    Steps,
    send_line,
    status_changes,
)
from quarterdeck.hub.decisions.inputs import AnswerFacts, GiveAnswer, StartFacts
from quarterdeck.hub.decisions.starts import begin
from quarterdeck.hub.effects import StoreGrant
from quarterdeck.hub.permissions import open_asks
from quarterdeck.hub.permissions.answers import Reply, late_prompt, reply_to
from quarterdeck.hub.permissions.context import CallQuestion
from quarterdeck.hub.permissions.edits import Edit, asked_call, check_edit, edited_call
from quarterdeck.hub.permissions.gate import PermissionGate, as_hook
from quarterdeck.hub.permissions.lasting_answers import check_lasting, grant_of, grant_text
from quarterdeck.hub.permissions.raw_answers import check_raw, read_raw
from quarterdeck.hub.run_state import RunState
from quarterdeck.journal.base import AskRecord
from quarterdeck.policy.grants import Grant
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    Event,
    PromptQueued,
    RunStopping,
    SpecChanged,
    StartAfresh,
    Switched,
)
from quarterdeck.protocol.modes import (
    ACCEPT_EDITS,
    DEFAULT,
    chosen_mode,
    resumed_spec,
    with_mode,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.wire.requests import CanUseTool

# --- the question --------------------------------------------------------------------------------


class Question(NamedTuple):
    """What is answered: the question, the call it is about, and the call that is wanted instead."""

    opened: AskOpened
    late: bool
    call: CanUseTool | None
    edited: CanUseTool | None


def is_open(state: State, command: cmd.AnswerAsk) -> bool:
    """Whether a CLI waits for the answer."""
    return state.run is not None and command.ask in state.view.asks


def question_of(
    state: State, command: cmd.AnswerAsk, record: AskRecord | None, answered_by: str
) -> Question:
    """What an answer is about. The first answer wins: raises `Conflict` for any other.

    `record` is the question as the journal has it, for one that is not open.
    """
    late = not is_open(state, command)
    if late:
        opened = _late_question(state, command, record, answered_by)
    else:
        assert state.run is not None
        opened = state.run.asks.original(state.view.asks[command.ask].opened)
    return Question(opened, late, asked_call(opened), edited_call(opened, command.answer))


def _late_question(
    state: State, command: cmd.AnswerAsk, record: AskRecord | None, answered_by: str
) -> AskOpened:
    """A question that is not open: another person was first, or its process is gone."""
    if record is None:
        raise NotFound("question", command.ask)
    match record.settled.event if record.settled else None:
        case AskAnswered(by=by):
            raise Conflict("already_answered", f"already answered by {by}")
        case AskWithdrawn() as withdrawn if state.run is not None:
            reason = with_texts(withdrawn).reason
            raise Conflict("withdrawn", f"the question was withdrawn: {reason}")
        case _ if state.run is not None:
            raise Conflict("not_open", "the question went away with its process")
        case _ if answered_by:
            raise Conflict("already_answered", f"already answered by {answered_by}")
        case _:
            return record.ask.opened


def rules_spec(state: State) -> SessionSpec:
    """The spec by which the rules judge a call of an answer."""
    if state.run is not None:
        return state.run.spec
    return resumed_spec(state.view.spec, state.view.mode)


def call_question(state: State, asked: Question, call: CanUseTool, now: int) -> CallQuestion:
    """The question to the rules about the call of an answer."""
    if asked.late or state.run is None:
        spec = rules_spec(state)
        mode = chosen_mode(spec) or DEFAULT
        return PermissionGate.of(spec).edit_question(call, mode, now)
    run = state.run
    from_hook = run.is_held(asked.opened)
    return run.gate.edit_question(call, run.switches.mode, now, from_hook=from_hook)


def granted_question(
    state: State, asked: Question, edit: Edit | None, now: int
) -> CallQuestion | None:
    """The question to the rules about what an answer grants; None: it is about no call."""
    call = asked.edited or asked.call
    if call is None:
        return None
    question = call_question(state, asked, call, now)
    return question if edit is None else replace(question, input=edit.input)


def edit_of(asked: Question, command: cmd.AnswerAsk, facts: AnswerFacts) -> Edit | None:
    """The call that runs in place of the one asked about. Raises `Forbidden`."""
    if asked.edited is None:
        return None
    assert facts.ruling is not None
    verdict = facts.ruling.verdict
    check_edit(verdict, command)
    return Edit(input=verdict.input or asked.edited.input, verdict=verdict)


# --- the answer ----------------------------------------------------------------------------------


def decide_answer(state: State, command: cmd.AnswerAsk, facts: AnswerFacts) -> Decision[Done]:
    """Answer a question: the first answer wins."""
    asked = question_of(state, command, facts.record, facts.answered_by)
    edit = edit_of(asked, command, facts)
    # Before a grant: this refuses an answer that does not fit its question.
    reply = None if asked.late else _reply(state, asked.opened, command, edit)
    grant = None
    if asked.edited is not None or asked.call is not None:
        grant = _grant(state, asked.opened, command, facts)
    if grant is not None:
        given = GiveAnswer(
            command=command, opened=asked.opened, edit=edit, grant=grant, late=asked.late
        )
        return Done(effects=(StoreGrant(grant=grant),), then=(given,))
    if reply is None:
        return (yield from _answer_late(state, asked.opened, command, edit, facts))
    return (yield from _answer_open(state, asked.opened, command, reply, facts))


def decide_give_answer(state: State, given: GiveAnswer, facts: StartFacts) -> Decision[Done]:
    """Answer a question with an answer that grants something, which is stored."""
    opened, command = given.opened, given.command
    if given.late:
        return (yield from _answer_late(state, opened, command, given.edit, facts))
    reply = _reply(state, opened, command, given.edit)
    reply = replace(reply, coded=(*reply.coded, grant_text(given.grant)))
    return (yield from _answer_open(state, opened, command, reply, facts))


def _answer_open(
    state: State, opened: AskOpened, command: cmd.AnswerAsk, reply: Reply, facts: Facts
) -> Decision[Done]:
    """The CLI gets its answer. A plan for a new conversation has this one end."""
    run = state.run
    assert run is not None
    yield from _answer(run, opened, reply, command, facts.now)
    outcome = Outcome(session=state.session, ask=command.ask)
    if reply.fresh is None:
        return Done(outcome=outcome)
    yield from _to_implement(state.view.spec, opened.ask, reply.fresh, command.by)
    yield StartAfresh(run=run.run, by=command.by)
    yield RunStopping(run=run.run, by=command.by)
    return Done(outcome=outcome, leave=run.run)


def _reply(state: State, opened: AskOpened, command: cmd.AnswerAsk, edit: Edit | None) -> Reply:
    """What the CLI of this version takes for a person's answer. Raises `UsageError`."""
    assert state.run is not None
    return reply_to(
        opened,
        command.answer,
        version=state.run.version,
        bypass_allowed=state.run.spec.skip_permissions,
        edit=edit,
    )


def _answer(
    run: RunState, opened: AskOpened, reply: Reply, command: cmd.AnswerAsk, at: int
) -> Steps:
    """The CLI gets its answer. Raises `Conflict` if the question is not open any more."""
    body: msgspec.Struct | Raw = as_hook(reply.body) if run.is_held(opened) else reply.body
    line = run.peer.answer_line(opened.request_id, body)
    if line is None:
        raise Conflict("not_open", "the question is not open any more")
    answer = Raw(msgspec.json.encode(command.answer))
    yield from open_asks.answer_events(opened, reply, command.by, answer)
    yield from send_line(run, line)
    yield from status_changes(run, at)
    yield from run.switches.answer_events(reply.body, run.spec, command.by)


def _answer_late(
    state: State,
    opened: AskOpened,
    command: cmd.AnswerAsk,
    edit: Edit | None,
    facts: StartFacts,
) -> Decision[Done]:
    """The process is gone: the session is resumed, and gets the answer as a prompt."""
    view, answer = state.view, command.answer
    answered = AskAnswered(
        ask=opened.ask,
        by=command.by,
        answer=Raw(msgspec.json.encode(answer)),
        allowed=_allows(answer),
    )
    match answer:
        case cmd.PlanAnswer(choice="fresh") if opened.plan:
            changed, queued = _to_implement(view.spec, opened.ask, opened.plan, command.by)
            yield from begin(state, facts, Origin(), answered, changed, queued)
        case _:
            content = Raw(msgspec.json.encode(late_prompt(opened, answer, edit)))
            queued = _answer_prompt(opened.ask, content, command.by)
            switches = _in_mode_of(view.spec, answer, command.by)
            origin = Origin(cli_session=view.cli_session)
            yield from begin(state, facts, origin, answered, *switches, queued)
    outcome = Outcome(session=state.session, ask=command.ask, prompt=queued.prompt)
    return Done(outcome=outcome)


def _allows(answer: cmd.Answer) -> bool:
    if isinstance(answer, cmd.RawAnswer):
        return read_raw(answer.body).behavior == "allow"
    return not isinstance(answer, cmd.DenyAnswer | cmd.SkipAnswer)


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


def _to_implement(
    spec: SessionSpec, ask: str, plan: str, by: str
) -> tuple[SpecChanged, PromptQueued]:
    """What makes a new conversation implement a plan."""
    spec = with_mode(spec, ACCEPT_EDITS, asked_for=False)
    content = Raw(msgspec.json.encode(f"Implement the following plan:\n\n{plan}"))
    return SpecChanged(spec=spec, by=by), _answer_prompt(ask, content, by)


def _answer_prompt(ask: str, content: Raw, by: str) -> PromptQueued:
    """The prompt that an answer makes. A question is answered once, and so has one at most."""
    return PromptQueued(prompt=derived_uuid(ask, "answer"), content=content, by=by)


# --- what it grants ------------------------------------------------------------------------------


def asks_the_rules(command: cmd.AnswerAsk) -> bool:
    """Whether an answer may have another call run, or grants more than one."""
    match command.answer:
        case cmd.AllowAnswer(input=given):
            return bool(given) or is_lasting(command)
        case cmd.RawAnswer():
            return True
        case _:
            return False


def is_lasting(command: cmd.AnswerAsk) -> bool:
    """Whether an answer grants more than one call."""
    answer = command.answer
    return isinstance(answer, cmd.AllowAnswer) and answer.scope is not cmd.Scope.ONCE


def check_grant(command: cmd.AnswerAsk) -> None:
    """Raise `Forbidden` or `UsageError` for what this person may not grant or change."""
    match command.answer:
        case cmd.RawAnswer(body=body):
            check_raw(body, command.role)
        case cmd.AllowAnswer() as answer:
            check_lasting(answer, command.role)
        case _:
            pass


def _grant(
    state: State, opened: AskOpened, command: cmd.AnswerAsk, facts: AnswerFacts
) -> Grant | None:
    """The grant of an answer that allows more than one call.

    Raises `UsageError` if its rules do not allow the call.
    """
    check_grant(command)
    answer = command.answer
    if not isinstance(answer, cmd.AllowAnswer) or not is_lasting(command):
        return None
    if not facts.allowed:
        raise UsageError(f"rules: {', '.join(answer.rules)} would not allow this call")
    return grant_of(
        answer,
        answer.rules or facts.narrowest,
        session=state.session,
        spec=state.view.spec,
        by=command.by,
        now=facts.now,
        ask=opened.ask,
    )
