"""Supervises every session: what it spends, and whether it is alive.

Owns the rules of budgets and of the watchdog as the hub applies them. A session asks at fixed
points: when lines came, before a prompt is sent, when the clock ticks, when a run ends. It journals
the actions that it gets, and then performs them. Below are the pure parts: `meter`, `budgets`,
`watchdog` and `crashes`. One supervisor serves all sessions. Its state is in the journal: the sums
over all sessions are read from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quarterdeck.domain.errors import Conflict
from quarterdeck.domain.structs import Value
from quarterdeck.hub.run import Run
from quarterdeck.hub.run_state import BUDGET
from quarterdeck.hub.supervision import crashes
from quarterdeck.hub.supervision.budgets import (
    Ledger,
    Limits,
    Spent,
    any_limit,
    news,
    project_of,
    reached,
    sentence,
)
from quarterdeck.hub.supervision.watchdog import UNSTOPPABLE, Action, Timeouts
from quarterdeck.journal.accounts import tokens_of
from quarterdeck.journal.base import Journal
from quarterdeck.journal.stored import Stored
from quarterdeck.journal.views import SessionView
from quarterdeck.protocol.events import (
    Alarmed,
    AlarmEnded,
    BudgetFreed,
    BudgetReached,
    Event,
    RunEnded,
    TurnEnded,
)
from quarterdeck.wire.commands import Interrupt

NOT_HEEDED_SECONDS = 30.0
"""How long a CLI may go on after it was interrupted for a budget, before it is ended."""


class Actions(Value):
    """What a session is to do: journal these events, and then end its process, or not.

    Lines for the CLI are in the run already.
    """

    events: tuple[Event, ...] = ()
    end: bool = False
    kill: bool = False

    def __bool__(self) -> bool:
        return bool(self.events) or self.end or self.kill


class Supervisor:
    """Watches all sessions."""

    def __init__(
        self,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits or Limits()
        self.timeouts = timeouts or Timeouts()
        self._now = now
        self._ledger = Ledger(now)

    @property
    def now(self) -> int:
        """The time, in ms since 1970."""
        return int(self._now() * 1000)

    async def load(self, journal: Journal) -> None:
        """Read from the journal what all sessions have spent."""
        await self._ledger.load(journal)

    def know(self, view: SessionView) -> None:
        """A session of the journal: what it has spent counts for those whose agents started it."""
        self._ledger.know(view)

    def note(self, before: SessionView | None, stored: Stored) -> None:
        """An event was stored on top of this view."""
        self._ledger.note(before, stored)

    # --- budgets -------------------------------------------------------------------------------

    def held(self, view: SessionView, run: Run | None = None) -> str | None:
        """Why no prompt is to be sent now; None if one may be."""
        return next((sentence(each) for each in self._reached(view, run)), None)

    def admit(self, view: SessionView, run: Run | None) -> None:
        """Refuse a new prompt while a budget is used up. Raises `Conflict`."""
        if why := self.held(view, run):
            raise Conflict("budget_reached", why)

    def check_spending(self, view: SessionView, run: Run, *, again: bool = False) -> Actions:
        """Lines came and are journalled: what is to be written down, and whether it must stop.

        Most lines change no number, and are passed over; but others may have spent (`again`).
        """
        ended = [AlarmEnded(alarm=alarm) for alarm in run.watch.ended(view.account)]
        if run.meter.version == run.meter.checked and not again:
            return Actions(events=tuple(ended))
        run.meter.checked = run.meter.version
        events: list[Event] = [*ended]
        over = self._reached(view, run)
        fresh, _ = news(view.account, over)
        if run.meter.due or (fresh and run.meter.used):
            events.append(run.meter.metered(run.run, self._ledger.prices))
        events += fresh
        if over and run.busy and not run.stopped_at:
            run.request(Interrupt(), self.now, by=BUDGET)
        return Actions(events=tuple(events))

    def check_turns(self, view: SessionView, run: Run, events: Sequence[Event]) -> Actions:
        """Turns have ended: one of a resumed conversation may have come to nothing."""
        found: list[Event] = []
        for event in events:
            if isinstance(event, TurnEnded) and (event.failed or not event.text):
                why = event.outcome.replace("_", " ")
                found += crashes.alarms_at_turn(view, why, answered=run.watch.answered_for)
        return Actions(events=tuple(found))

    def freed(self, view: SessionView, run: Run | None) -> Actions:
        """Which limits are not reached any more: they were raised, or a day or a run is new."""
        if not view.account.budgets:
            return Actions()
        _, freed = news(view.account, self._reached(view, run))
        return Actions(events=tuple(BudgetFreed(scope=e.scope, unit=e.unit) for e in freed))

    # --- liveness ------------------------------------------------------------------------------

    def ticked(self, view: SessionView, run: Run) -> Actions:
        """The clock has moved on: is it alive?"""
        if view.link_lost is not None:
            return Actions()  # its silence is counted from when the link is back
        if run.stopped_at and self.now > run.stopped_at + NOT_HEEDED_SECONDS * 1000:
            return self._unstoppable(view, run)
        findings = run.watch.check(
            self.now,
            self.timeouts,
            view.account,
            in_turn=run.busy,
            asking=bool(view.asks),
        )
        events: list[Event] = []
        for finding in findings:
            if finding.action is Action.INTERRUPT:
                run.request(Interrupt(), self.now)
            elif finding.action is Action.REPEAT:
                run.repeat_answer(run.watch.unheeded, self.now)
            events.append(
                Alarmed(alarm=finding.alarm, text=finding.text, action=finding.action.value)
            )
        actions = {finding.action for finding in findings}
        return Actions(events=tuple(events), end=Action.END in actions, kill=Action.KILL in actions)

    def ended(self, view: SessionView, run: Run, ended: RunEnded) -> list[Event]:
        """A run is about to end: what is written down before its end."""
        events: list[Event] = []
        if run.meter.used:
            metered = run.meter.metered(run.run, self._ledger.prices)
            if metered.models != view.account.metered:
                events.append(metered)
        return [*events, *crashes.alarms_at_end(view, ended, answered=run.watch.answered_for)]

    def after_end(self, view: SessionView) -> list[Event]:
        """A run has ended: what is written down after it."""
        alarm = crashes.loop_alarm(view)
        return [] if alarm is None else [alarm]

    def restarts(self, view: SessionView) -> bool:
        """Whether a session waits to be resumed by itself."""
        return crashes.restart_at(view) is not None

    def restart_due(self, view: SessionView) -> bool:
        """Whether a session is to be resumed by itself now."""
        due = crashes.restart_at(view)
        return due is not None and self.now >= due and self.held(view) is None

    # --- inside --------------------------------------------------------------------------------

    def _watched(self, view: SessionView) -> bool:
        return self._ledger.has_family_limit(view) or any_limit(
            view.spec.budget, self.limits, project_of(view)
        )

    def _reached(self, view: SessionView, run: Run | None) -> list[BudgetReached]:
        if not self._watched(view):
            return []
        open_turn = None
        if run is not None and run.meter.used:
            models = run.meter.models(self._ledger.prices)
            open_turn = Spent(usd=sum(each.cost_usd for each in models), tokens=tokens_of(models))
        spending = self._ledger.spending(view, open_turn)
        return reached(view.spec.budget, self.limits, project_of(view), spending)

    def _unstoppable(self, view: SessionView, run: Run) -> Actions:
        if not run.busy or UNSTOPPABLE in view.account.alarms:
            return Actions()
        text = "It was interrupted for its budget, and went on."
        return Actions(
            events=(Alarmed(alarm=UNSTOPPABLE, text=text, action=Action.END.value),), end=True
        )
