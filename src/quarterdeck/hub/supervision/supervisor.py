"""Supervises every session: what all of them spend, and how long silence is borne.

Owns the limits and timeouts that hold now, the clock, and the sums over all sessions, which are
read from the journal. It gives facts, and decides nothing: `decisions.supervision` does, with the
pure parts `meter`, `budgets`, `watchdog` and `crashes`. One supervisor serves all sessions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from quarterdeck.hub.run_state import RunState
from quarterdeck.hub.supervision import crashes
from quarterdeck.hub.supervision.budgets import (
    Ledger,
    Limits,
    Spent,
    any_limit,
    project_of,
    reached_limits,
)
from quarterdeck.hub.supervision.meter import Prices
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.accounts import tokens_of
from quarterdeck.journal.base import Journal
from quarterdeck.protocol.events import BudgetReached
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored


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

    # --- facts ---------------------------------------------------------------------------------

    @property
    def prices(self) -> Prices:
        """What models cost, as far as that is known."""
        return self._ledger.prices

    def over(self, view: SessionView, run: RunState | None) -> tuple[BudgetReached, ...]:
        """The limits that are reached, the nearest first: no prompt is to be sent then."""
        if not self._is_watched(view):
            return ()
        open_turn = None
        if run is not None and run.meter.used:
            models = run.meter.models(self._ledger.prices)
            open_turn = Spent(usd=sum(each.cost_usd for each in models), tokens=tokens_of(models))
        spending = self._ledger.spending(view, open_turn)
        return tuple(reached_limits(view.spec.budget, self.limits, project_of(view), spending))

    def restarts(self, view: SessionView) -> bool:
        """Whether a session waits to be resumed by itself."""
        return crashes.restart_at(view) is not None

    # --- inside --------------------------------------------------------------------------------

    def _is_watched(self, view: SessionView) -> bool:
        return self._ledger.has_family_limit(view) or any_limit(
            view.spec.budget, self.limits, project_of(view)
        )
