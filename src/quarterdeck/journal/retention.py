"""Retention: which sessions are deleted, and why. Pure.

Owns the rule. Nothing is deleted unless a limit is set, and a session in use is never deleted: one
with a process, an open question or a queued prompt stays, whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.journal.views import SessionView

DAY = 86_400_000


class Retention(Value):
    """The limits of retention. Without a limit everything is kept."""

    days: float | None = None
    """Delete sessions without an event for so many days."""
    bytes: int | None = None
    """Delete the oldest sessions until all events together have at most so many bytes."""
    archived_only: bool = False
    """Delete archived sessions only."""

    def __post_init__(self) -> None:
        """Refuse invalid limits."""
        if self.days is not None and not 0 < self.days < float("inf"):
            raise UsageError("retention: days: must be a number above 0")
        if self.bytes is not None and self.bytes <= 0:
            raise UsageError("retention: bytes: must be a number above 0")

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is ever deleted."""
        return self.days is None and self.bytes is None


class Leaving(Value, omit_defaults=False):
    """A session to delete, and why."""

    session: str
    name: str
    updated: int
    bytes: int
    archived: bool
    reason: str


class Plan(Value, omit_defaults=False):
    """The sessions to delete, in order, and the size of everything."""

    leaving: tuple[Leaving, ...]
    sessions: int
    bytes: int

    @property
    def freed(self) -> int:
        """The size of the sessions to delete."""
        return sum(each.bytes for each in self.leaving)


def plan(rule: Retention, views: Iterable[SessionView], sizes: Mapping[str, int], now: int) -> Plan:
    """Apply the rule to these sessions, at a time in ms since 1970."""
    everything = list(views)
    total = sum(sizes.get(view.session, 0) for view in everything)
    # Archived sessions first, and the oldest of them first.
    free = sorted(
        (view for view in everything if _may_go(view, rule)),
        key=lambda view: (not view.archived, view.updated, view.session),
    )
    leaving: dict[str, Leaving] = {}
    if rule.days is not None:
        oldest = now - int(rule.days * DAY)
        for view in free:
            if view.updated < oldest:
                idle = (now - view.updated) // DAY
                leaving[view.session] = _leaving(view, sizes, f"nothing for {idle} days")
    if rule.bytes is not None:
        left = total - sum(each.bytes for each in leaving.values())
        for view in free:
            if left <= rule.bytes:
                break
            if view.session not in leaving:
                reason = f"all together have more than {rule.bytes} bytes"
                leaving[view.session] = _leaving(view, sizes, reason)
                left -= sizes.get(view.session, 0)
    return Plan(leaving=tuple(leaving.values()), sessions=len(everything), bytes=total)


def _may_go(view: SessionView, rule: Retention) -> bool:
    if view.run is not None or view.asks or view.unsent:
        return False
    return view.archived or not rule.archived_only


def _leaving(view: SessionView, sizes: Mapping[str, int], reason: str) -> Leaving:
    return Leaving(
        session=view.session,
        name=view.name,
        updated=view.updated,
        bytes=sizes.get(view.session, 0),
        archived=view.archived,
        reason=reason,
    )
