"""Usage as rows of a table, for the engines that have tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import convert
from msgspec.structs import astuple

from quarterdeck.journal.usage import Share
from quarterdeck.protocol.usage import LimitState, UsageRow, Used

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
