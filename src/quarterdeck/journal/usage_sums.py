"""The sums of usage in memory, for the engine without a file."""

from __future__ import annotations

from quarterdeck.journal.usage import Share, add, day_of, limit_state, shares, slots
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow, Used


class UsageSums:
    """Every share, and the last report of each limit."""

    def __init__(self) -> None:
        self._shares: list[tuple[str, Share]] = []
        self._limits: dict[tuple[str, str], LimitState] = {}

    def take(self, before: SessionView | None, after: SessionView, stored: Stored) -> None:
        """Add a stored event."""
        self._shares += [(stored.session, share) for share in shares(before, after, stored)]
        if (new_limit := limit_state(after, stored)) is not None:
            self._limits[new_limit.machine, new_limit.limit] = new_limit

    def rows(self, by: UsageBy, since: int | None, until: int | None) -> list[UsageRow]:
        """The usage between two times."""
        first, end = slots(since, until)
        found: dict[str, Used] = {}
        for session, share in self._shares:
            if first <= share.slot < end:
                key = _key(by, session, share)
                found[key] = add(found.get(key, Used()), share.used)
        return [UsageRow(key=key, used=found[key]) for key in sorted(found)]

    def limits(self) -> list[LimitState]:
        """The limits of each account."""
        return [self._limits[key] for key in sorted(self._limits)]


def _key(by: UsageBy, session: str, share: Share) -> str:
    match by:
        case UsageBy.DAY:
            return day_of(share.slot)
        case UsageBy.PROJECT:
            return share.project
        case UsageBy.MODEL:
            return share.model
        case UsageBy.MACHINE:
            return share.machine
        case UsageBy.SESSION:
            return session
