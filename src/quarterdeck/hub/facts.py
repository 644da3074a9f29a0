"""The facts that decisions about a session need: looked up by the shell before it decides.

Owns what is read from the clock, the journal, the rules, the disk and the other sessions for each
kind of input (`GATHER`). It decides nothing, and changes nothing; the questions that it asks are
made by pure functions of `decisions`. An input that is not in the table needs the time only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quarterdeck.domain.errors import StaleFence
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.decisions import answers, commands
from quarterdeck.hub.decisions import inputs as on
from quarterdeck.hub.decisions.base import Facts
from quarterdeck.hub.decisions.supervision import restart_due
from quarterdeck.hub.lines import check_steering, take_content
from quarterdeck.hub.supervision import crashes
from quarterdeck.journal.base import AskRecord
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.events import AskAnswered, RunEnded, RunStarting
from quarterdeck.runtime.off_loop import large_turn

if TYPE_CHECKING:
    from quarterdeck.hub.session import Session

LOOK_BACK = 32
"""How many events are read to find the end of the last run; then so many times more."""


async def gather(session: Session, input_: on.Input) -> Facts:
    """What a decision about this input needs to know."""
    look_up = GATHER.get(type(input_))
    if look_up is None:
        return Facts(now=session.supervisor.now)
    return await look_up(session, input_)


# --- a run that may begin ------------------------------------------------------------------------


async def _start(session: Session, _: object) -> on.StartFacts:
    return on.StartFacts(
        now=session.supervisor.now, run=new_id(), written=await written_before(session)
    )


async def written_before(session: Session) -> tuple[str, ...]:
    """The files that its runs have written. The end of the last run has them.

    It is near the end of the journal.
    """
    if not session.known or not session.view.run_began:
        return ()
    view = session.view
    after, first = view.head, view.run_began - 1
    while after > first:
        after = max(first, view.head - LOOK_BACK * (view.head - after or 1))
        found = [each.event async for each in session.events_after(after)]
        for event in reversed(found):
            if isinstance(event, RunEnded | RunStarting):
                return event.written
    return ()


async def _tick(session: Session, _: object) -> on.StartFacts:
    """Budgets are looked at only where it matters: there may be hundreds of sessions."""
    now, run = session.supervisor.now, session.run
    if not session.known:
        return on.StartFacts(now=now)
    view = session.view
    waits = run is None and crashes.restart_at(view) is not None
    if not view.account.budgets and not waits:
        return on.StartFacts(now=now)
    facts = on.StartFacts(now=now, over=session.supervisor.over(view, session.run_state))
    if not waits or not restart_due(view, facts):
        return facts
    written = await written_before(session)
    return on.StartFacts(now=now, over=facts.over, run=new_id(), written=written)


async def _end_facts(session: Session, _: object) -> on.EndFacts:
    """The state of a run has what it has written; the journal has it of a run that has ended."""
    supervisor = session.supervisor
    return on.EndFacts(
        now=supervisor.now,
        run=new_id(),
        written=() if session.run is not None else await written_before(session),
        prices=supervisor.prices,
        reachable=session.port is not None,
    )


# --- budgets -------------------------------------------------------------------------------------


async def _budget_facts(session: Session, check: on.CheckSpending) -> on.BudgetFacts:
    """Most lines change no number, and are passed over; but others may have spent (`again`)."""
    supervisor, run = session.supervisor, session.run_state
    now, prices = supervisor.now, supervisor.prices
    if run is None:
        return on.BudgetFacts(now=now, prices=prices, changed=False)
    changed = run.meter.version != run.meter.checked
    if not changed and not check.again:
        return on.BudgetFacts(now=now, prices=prices, changed=False)
    return on.BudgetFacts(
        now=now, prices=prices, changed=changed, over=supervisor.over(session.view, run)
    )


async def _budgets(session: Session, _: object) -> on.BudgetFacts:
    supervisor = session.supervisor
    over = supervisor.over(session.view, session.run_state)
    return on.BudgetFacts(now=supervisor.now, prices=supervisor.prices, over=over)


async def _send_next(session: Session, _: object) -> on.BudgetFacts:
    run = session.run_state
    following = commands.next_unsent(session.view, run) if run is not None and run.idle else None
    if following is not None:
        await large_turn(len(memoryview(following.content)))
        return await _budgets(session, _)
    return on.BudgetFacts(now=session.supervisor.now, prices=session.supervisor.prices)


async def _alive(session: Session, _: object) -> on.AliveFacts:
    supervisor = session.supervisor
    return on.AliveFacts(now=supervisor.now, timeouts=supervisor.timeouts)


# --- prompts -------------------------------------------------------------------------------------


async def _prompt(session: Session, command: cmd.SendPrompt) -> on.PromptFacts:
    supervisor = session.supervisor
    if await _knows_prompt(session, command.prompt):
        return on.PromptFacts(now=supervisor.now, known=True)
    content = await take_content(command.content)
    if command.steer:
        await check_steering(content)
    starts = session.run is None
    written = await written_before(session) if starts else ()
    await large_turn(len(memoryview(content)))
    return on.PromptFacts(
        now=supervisor.now,
        content=content,
        over=supervisor.over(session.view, session.run_state),
        run=new_id() if starts else "",
        written=written,
    )


async def _changed_prompt(session: Session, command: cmd.ChangePrompt) -> on.PromptFacts:
    known = await _knows_prompt(session, command.prompt)
    commands.check_queued(session.view, command.prompt, known=known)
    content = await take_content(command.content)
    return on.PromptFacts(now=session.supervisor.now, known=known, content=content)


async def _cancelled_prompt(session: Session, command: cmd.CancelPrompt) -> on.PromptFacts:
    known = await _knows_prompt(session, command.prompt)
    return on.PromptFacts(now=session.supervisor.now, known=known)


async def _knows_prompt(session: Session, prompt: str) -> bool:
    """Whether there was a prompt with this id. The view keeps the newest ids only."""
    view = session.view
    if prompt in view.prompts or not view.prompts_forgotten:
        return prompt in view.prompts
    return await session.journal.has_prompt(session.id, prompt)


# --- answers -------------------------------------------------------------------------------------


async def _answer(session: Session, command: cmd.AnswerAsk) -> on.AnswerFacts:
    """What the rules say of the call that an answer wants, and of what it grants."""
    state, now = session.state, session.supervisor.now
    record, answered_by = None, ""
    late = not answers.is_open(state, command)
    if not late and not answers.asks_the_rules(command):
        return on.AnswerFacts(now=now)
    if late:
        record = await session.journal.find_ask(command.ask)
        if record is not None and record.settled is None:
            await _check_held(session)
        if record is not None and session.run is None:
            answered_by = await _answered_late_by(session, command.ask, record)
    asked = answers.question_of(state, command, record, answered_by)
    ruling = None
    if asked.edited is not None:
        question = answers.call_question(state, asked, asked.edited, now)
        ruling = await session.rule(question, answers.rules_spec(state))
    facts = on.AnswerFacts(
        now=now,
        record=record,
        answered_by=answered_by,
        ruling=ruling,
        run=new_id() if late else "",
        written=await written_before(session) if late else (),
    )
    if not answers.is_lasting(command):
        return facts
    return await _answer_facts(session, command, asked, facts)


async def _check_held(session: Session) -> None:
    """The journal has an open question that memory lacks. Raise `StaleFence` if another hub has it.

    A machine may have gone to that hub, and have asked there, before this hub has noticed.
    """
    if session.fleet is None or session.run is None:
        return
    await session.fleet.look()
    if not session.held:
        raise StaleFence(f"session {session.id}")


async def _answer_facts(
    session: Session, command: cmd.AnswerAsk, asked: answers.Question, facts: on.AnswerFacts
) -> on.AnswerFacts:
    """Whether the rules of an answer allow its call, or which ones do."""
    edit = answers.edit_of(asked, command, facts)
    question = answers.granted_question(session.state, asked, edit, facts.now)
    if question is None:
        return facts
    answers.check_grant(command)
    assert isinstance(command.answer, cmd.AllowAnswer)
    context, rules = session.policy_context, command.answer.rules
    if rules:
        return replace(facts, allowed=await context.is_allowed_by(rules, question))
    return replace(facts, narrowest=await context.narrowest(question))


async def _answered_late_by(session: Session, ask: str, record: AskRecord) -> str:
    """Who has answered a question after its process had ended; empty: nobody."""
    if record.settled is None or isinstance(record.settled.event, AskAnswered):
        return ""
    position = record.settled.position
    while page := await session.journal.audit(session=session.id, after=position):
        position = page[-1].position
        for stored in page:
            if isinstance(stored.event, AskAnswered) and stored.event.ask == ask:
                return stored.event.by
    return ""


async def _give_answer(session: Session, given: on.GiveAnswer) -> on.StartFacts:
    if given.late:
        return await _start(session, given)
    return on.StartFacts(now=session.supervisor.now)


# --- messages between two runs -------------------------------------------------------------------


async def _earlier(session: Session, read: on.EarlierRead) -> on.EarlierFacts:
    cut_off, known = session.gap.between(read.run)
    return on.EarlierFacts(now=session.supervisor.now, cut_off=cut_off, known=known)


GATHER: dict[type[object], Callable[[Session, Any], Awaitable[Facts]]] = {
    cmd.ResumeSession: _start,
    cmd.SendPrompt: _prompt,
    cmd.ChangePrompt: _changed_prompt,
    cmd.CancelPrompt: _cancelled_prompt,
    cmd.AnswerAsk: _answer,
    on.Create: _start,
    on.Ended: _end_facts,
    on.Move: _end_facts,
    on.Tick: _tick,
    on.CheckSpending: _budget_facts,
    on.CheckFreed: _budgets,
    on.CheckAlive: _alive,
    on.SendNext: _send_next,
    on.GiveAnswer: _give_answer,
    on.EarlierRead: _earlier,
}
"""What is looked up for each kind of input. Lines have their own way: see `session_process`."""
