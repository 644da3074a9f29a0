"""What follows from the clock, from what was spent and from silence. Pure.

The facts say which limits are reached and how long silence is borne; `supervision.supervisor` has
them. The pure parts below are `supervision.meter`, `budgets`, `watchdog` and `crashes`.
"""

from __future__ import annotations

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.decisions.base import (
    NOTHING,
    Decision,
    Done,
    Facts,
    State,
    Steps,
    send_line,
)
from quarterdeck.hub.decisions.inputs import (
    AliveFacts,
    BudgetFacts,
    CheckAlive,
    CheckFreed,
    CheckSpending,
    CheckTurns,
    Input,
    SendNext,
    StartFacts,
    Tick,
)
from quarterdeck.hub.decisions.lines import open_plans
from quarterdeck.hub.decisions.starts import begin, check_machine, next_spec
from quarterdeck.hub.effects import SpendingChecked
from quarterdeck.hub.run_state import BUDGET, RunState
from quarterdeck.hub.supervision import crashes
from quarterdeck.hub.supervision.budgets import news
from quarterdeck.hub.supervision.watchdog import UNSTOPPABLE
from quarterdeck.protocol.events import Alarmed, AlarmEnded, BudgetFreed, BudgetReached, Noted
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import Origin
from quarterdeck.wire.commands import Interrupt

PLAN_MS = 3000
"""How long the card of a plan waits for the plan's text."""
NOT_HEEDED_SECONDS = 30.0
"""How long a CLI may go on after it was interrupted for a budget, before it is ended."""


# --- the clock -----------------------------------------------------------------------------------


def decide_tick(state: State, tick: Tick, facts: StartFacts) -> Decision[Done]:
    """What time brings: limits that are free again, a session that is resumed by itself, a plan
    without its text, the end of a limit of the account. Silence and spending are checked next.
    """
    del tick
    if state.stored is None:
        return NOTHING
    view, run = state.view, state.run
    freed = bool(view.account.budgets) and (yield from _lift_budgets(view, facts.over))
    if run is None:
        if restart_due(view, facts):
            yield from _restart(state, facts)
        return NOTHING
    changed = yield from _tick_run(run, facts.now)
    then: list[Input] = [SendNext()] if changed else []
    then.append(CheckSpending(again=True))
    if run.busy or view.account.stopping:
        then.append(CheckAlive())
    if freed:
        then.append(SendNext())
    return Done(then=tuple(then))


def restart_due(view: SessionView, facts: StartFacts) -> bool:
    """Whether a session is to be resumed by itself now."""
    due = crashes.restart_at(view)
    return due is not None and facts.now >= due and not facts.over


def _restart(state: State, facts: StartFacts) -> Steps:
    origin = Origin(cli_session=state.view.cli_session)
    try:
        check_machine(next_spec(state.view, origin), state.session)
    except Conflict:  # not now; the clock ticks on
        return
    yield from begin(state, facts, origin, crashes.restart_note(state.view))


def _tick_run(run: RunState, now: int) -> Decision[bool]:
    """What time brings to a run. Returns whether it brings anything."""
    changed = False
    for step in _plans_and_turns(run, now):
        changed = True
        yield step
    if run.status.limit_is_over(now) or changed:
        for step in run.status.changes(run.peer, None, now):
            changed = True
            yield step
    return changed


def _plans_and_turns(run: RunState, now: int) -> Steps:
    yield from open_plans(run, now - PLAN_MS, None, now)
    if run.lost_turn.is_over(now):
        lost = CodedText(code=TextCode.TURN_END_LOST)
        yield Noted(level="warning", text="", coded=lost)
        yield run.turns.lost_turn_end(run.peer.turns.taken, run.meter.tool_calls)


# --- budgets -------------------------------------------------------------------------------------


def decide_freed(state: State, check: CheckFreed, facts: BudgetFacts) -> Decision[Done]:
    """Which limits are not reached any more: they were raised, or a day or a run is new."""
    del check
    if state.view.account.budgets:
        yield from _lift_budgets(state.view, facts.over)
    return NOTHING


def _lift_budgets(view: SessionView, over: tuple[BudgetReached, ...]) -> Decision[bool]:
    _, freed = news(view.account, list(over))
    for each in freed:
        yield BudgetFreed(scope=each.scope, unit=each.unit)
    return bool(freed)


def decide_spending(state: State, check: CheckSpending, facts: BudgetFacts) -> Decision[Done]:
    """What a run has used is written down, and it is interrupted if a budget is used up.

    An alarm of silence is over once the CLI has shown life.
    """
    run, view = state.run, state.view
    if run is None:
        return NOTHING
    ended = run.watch.ended_alarms(view.account)
    over = list(facts.over)
    looked = facts.changed or check.again
    checked = (SpendingChecked(),) if looked else ()
    fresh = news(view.account, over)[0] if looked else []
    due = looked and (run.meter.due or (bool(fresh) and run.meter.used))
    metered = run.meter.metered_event(run.run, facts.prices) if due else None
    if over and run.busy and not run.stopped_at:
        yield from send_line(run, run.peer.request_line(Interrupt())[1], by=BUDGET)
    for alarm in ended:
        yield AlarmEnded(alarm=alarm)
    if metered is not None:
        yield metered
    yield from fresh
    return Done(effects=checked)


# --- liveness ------------------------------------------------------------------------------------


def decide_turns(state: State, check: CheckTurns, facts: Facts) -> Decision[Done]:
    """Turns have ended: one of a resumed conversation may have come to nothing."""
    del facts
    run = state.run
    for event in check.ended if run is not None else ():
        if run is not None and (event.failed or not event.text):
            why = event.outcome.replace("_", " ")
            yield from crashes.alarms_at_turn(state.view, why, answered=run.watch.answered_for)
    return NOTHING


def decide_alive(state: State, check: CheckAlive, facts: AliveFacts) -> Decision[Done]:
    """The clock has moved on: is it alive?"""
    del check
    run, view, now = state.run, state.view, facts.now
    if run is None or view.link_lost is not None:
        return NOTHING  # its silence is counted from when the link is back
    if run.stopped_at and now > run.stopped_at + NOT_HEEDED_SECONDS * 1000:
        yield from _unstoppable(view, run)
        return NOTHING
    findings = run.watch.check(
        now, facts.timeouts, view.account, in_turn=run.busy, asking=bool(view.asks)
    )
    for finding in findings:
        if finding.act is AlarmAct.TURN_INTERRUPTED:
            yield from send_line(run, run.peer.request_line(Interrupt())[1])
        elif finding.act is AlarmAct.ANSWER_REPEATED and run.watch.unheeded is not None:
            yield from send_line(run, run.peer.answered_line(run.watch.unheeded))
    for finding in findings:
        yield Alarmed(alarm=finding.alarm, text="", coded=finding.coded, act=finding.act.value)
    return NOTHING


def _unstoppable(view: SessionView, run: RunState) -> Steps:
    if run.busy and UNSTOPPABLE not in view.account.alarms:
        coded = CodedText(code=TextCode.UNSTOPPABLE)
        act = AlarmAct.RUN_ENDED.value
        yield Alarmed(alarm=UNSTOPPABLE, text="", coded=coded, act=act)
