"""The usage of all sessions: by day, project, model, machine and session.

Owns what an event adds to which sum. An engine keeps the sums beside the events, in slots of a
quarter of an hour, and adds to them with every append; so a query over a month reads some thousand
small rows and not a million events. Below are `accounts` and `views`. Slots become days in a query,
in the time zone of the hub.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import convert
from msgspec.structs import astuple

from quarterdeck.domain.structs import Value
from quarterdeck.journal.accounts import Portion, main_model, portions
from quarterdeck.protocol.events import Metered, RateLimited, TurnEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import LimitState as LimitState
from quarterdeck.protocol.usage import UsageBy as UsageBy
from quarterdeck.protocol.usage import UsageReport as UsageReport
from quarterdeck.protocol.usage import UsageRow as UsageRow
from quarterdeck.protocol.usage import Used as Used

SLOT_MS = 900_000
"""A quarter of an hour: in every time zone a day starts at the start of a slot."""


class Share(Value):
    """What an event adds to one sum. The session is the event's."""

    slot: int
    project: str
    machine: str
    model: str
    used: Used


def shares(before: SessionView | None, after: SessionView, stored: Stored) -> list[Share]:
    """What an event adds, between the views before and after it."""
    if before is None or after.deleted:
        return []
    place = (stored.at // SLOT_MS, after.spec.project or after.spec.directory, after.machine or "")
    found: dict[str, Used] = {}
    match stored.event:
        case Metered() | TurnEnded() as event if after.account is not before.account:
            for portion in portions(before.account, event):
                _put(found, portion.model, _portion_used(portion))
            main = main_model(event.models or before.account.metered)
            _put(found, main, _turn(before, after, event))
    settled = [card for ask, card in before.asks.items() if ask not in after.asks]
    if settled:
        waited = sum(max(stored.at - card.at, 0) for card in settled)
        _put(found, "", Used(asks=len(settled), waiting_ms=waited))
    return [
        Share(slot=place[0], project=place[1], machine=place[2], model=model, used=used)
        for model, used in found.items()
        if used != _NOTHING
    ]


def limit_state(after: SessionView, stored: Stored) -> LimitState | None:
    """The limits of an account in an event."""
    match stored.event:
        case RateLimited(status=status, limit=limit, resets_at=resets_at, used=used):
            return LimitState(
                machine=after.machine or "",
                limit=limit or "",
                status=status,
                at=stored.at,
                resets_at=resets_at,
                used=used,
                session=stored.session,
            )
        case _:
            return None


def add(one: Used, other: Used) -> Used:
    """The sum of two."""
    sums = (a + b for a, b in zip(astuple(one), astuple(other), strict=True))
    return Used(**dict(zip(Used.__struct_fields__, sums, strict=True)))


def total(rows: Iterable[UsageRow]) -> Used:
    """The sum of all."""
    found = Used()
    for row in rows:
        found = add(found, row.used)
    return found


def slots(since: int | None, until: int | None) -> tuple[int, int]:
    """The first slot at or after `since`, and the first at or after `until`, both in ms."""
    first = 0 if since is None else -(-since // SLOT_MS)
    end = 2**62 if until is None else -(-until // SLOT_MS)
    return first, end


def day_of(slot: int) -> str:
    """The day of a slot, in local time."""
    return datetime.fromtimestamp(slot * (SLOT_MS // 1000)).astimezone().date().isoformat()


def midnight(now_ms: int) -> int:
    """When the local day of this moment began, in ms since 1970."""
    now = datetime.fromtimestamp(now_ms / 1000).astimezone()
    began = datetime(now.year, now.month, now.day).astimezone()
    return int(began.timestamp() * 1000)


_NOTHING = Used()


def _put(found: dict[str, Used], model: str, used: Used) -> None:
    found[model] = add(found.get(model, _NOTHING), used)


def _portion_used(portion: Portion) -> Used:
    return Used(
        cost_usd=_finite(portion.usd),
        estimated_usd=_finite(portion.estimated_usd),
        input=portion.input,
        output=portion.output,
        cache_read=portion.cache_read,
        cache_write=portion.cache_write,
    )


def _turn(before: SessionView, after: SessionView, event: Metered | TurnEnded) -> Used:
    calls = after.account.tool_calls - before.account.tool_calls
    if isinstance(event, Metered):
        return Used(tool_calls=calls)
    return Used(turns=1, failed=int(event.failed), tool_calls=calls)


def _finite(number: float) -> float:
    return number if math.isfinite(number) and abs(number) < _MOST_USD else 0.0


_MOST_USD = 1e12
"""A higher cost of one turn is an error, and must not corrupt a sum."""


COLUMNS = Used.__struct_fields__
"""The columns of the sums, behind slot, session, project, machine and model."""

_LIMIT = ("machine", "limit", "status", "at", "resets_at", "used", "session")


def usage_row(staged: tuple[int, Share]) -> tuple[object, ...]:
    """The row that adds a share to the session with this number."""
    number, share = staged
    return (share.slot, number, share.project, share.machine, share.model, *astuple(share.used))


def sum_row(key: str, sums: Iterable[float]) -> UsageRow:
    """A row of sums."""
    return UsageRow(key=key, used=convert(dict(zip(COLUMNS, sums, strict=True)), Used))


def limit_row(found: LimitState) -> tuple[object, ...]:
    """The row of a limit."""
    return (
        found.machine,
        found.limit,
        found.status,
        found.at,
        found.resets_at,
        found.used,
        found.session,
    )


def limit_of(row: Sequence[object]) -> LimitState:
    """The limit of a row."""
    return convert(dict(zip(_LIMIT, row, strict=True)), LimitState)


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
