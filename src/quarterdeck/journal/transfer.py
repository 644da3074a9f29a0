"""Copies a whole journal from one engine to another, and compares both.

Owns what a journal consists of, as tables that every engine with tables can give and take: events
with their numbers, positions, times and bytes; views, questions, sums and the audit log beside
them. What hubs own is not copied, nor are leases: hubs begin anew. Everything here blocks.

The copy has a new epoch (the original one, a dot, and an id), as a restored backup has: its audit
log goes on with the same chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Protocol

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.journal.chain import Check, Link
from quarterdeck.journal.usage import COLUMNS
from quarterdeck.protocol.audit import Checked

Row = Sequence[Any]

TABLES: dict[str, tuple[str, ...]] = {
    "sessions": (
        *("number", "session", "head", "updated", "said", "sent"),
        *("archived", "deleted", "folded", "view"),
    ),
    "events": ("position", "session", "seq", "at", "json"),
    "asks": ("opened", "session", "ask", "settled"),
    "audit": ("position", "session"),
    "chain": ("position", "session", "digest", "seal"),
    "prompts": ("session", "prompt"),
    "snapshots": ("session", "seq", "data"),
    "usage": ("slot", "session", "project", "machine", "model", *COLUMNS),
    "account_limits": ("machine", "name", "status", "at", "resets_at", "used", "session"),
    "shared": ("namespace", "key", "value", "version"),
}
"""The tables with their columns; the first one or two are the key, by which rows are ordered."""

CHAIN_PAGE = 1000


class Copied(Value, omit_defaults=False):
    """The result of a copy."""

    epoch: str
    sessions: int
    events: int
    position: int
    head: str
    """The head of the audit log's chain, the same in both."""


class Tables(Protocol):
    """A journal as tables, within one transaction."""

    name: str

    def check_unused(self) -> None:
        """Raises `JournalError` if a hub uses it, unless hubs may."""

    def epoch(self) -> str:
        """The id of the journal."""

    def is_empty(self) -> bool:
        """Whether nothing was ever stored."""

    def tick(self) -> int:
        """The last number of fences and versions."""

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table, by its key."""

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows."""

    def finish(self, epoch: str, tick: int) -> None:
        """Set what is not in a table."""

    def links(self, after: int, limit: int) -> list[Link]:
        """A page of the audit log's chain."""


Opened = Callable[[], AbstractContextManager[Tables]]
"""Opens a journal for a transaction: it is committed at the end, and not after an error."""


def copy(source: Opened, target: Opened) -> Copied:
    """Copy everything into an empty journal, in one transaction. Raises `UsageError` if it is not
    empty, `JournalError` if a copy is not the same or the source's chain is broken.
    """
    with source() as old, target() as new:
        old.check_unused()
        new.check_unused()
        if not new.is_empty():
            raise UsageError(f"{new.name} is not empty: a journal is copied into an empty one only")
        _check_tables(old)
        counts = {table: _copy_table(old, new, table) for table in TABLES}
        epoch = f"{old.epoch().partition('.')[0]}.{new_id()}"
        new.finish(epoch, old.tick())
        for table in TABLES:
            if _digest(old, table) != _digest(new, table):
                raise JournalError(f"{new.name}: the copy of {table} is not the same; it is undone")
        before, after = _check_tables(old), _check_tables(new)
        if before != after:
            raise JournalError(f"{new.name}: the chain of the copy is not the same; it is undone")
        old.check_unused()  # one that began meanwhile may have stored something
        new.check_unused()
        return Copied(
            epoch=epoch,
            sessions=counts["sessions"],
            events=counts["events"],
            position=_last_position(new),
            head=str(after.head),
        )


def _copy_table(old: Tables, new: Tables, table: str) -> int:
    count = 0

    def count_rows() -> Iterator[Row]:
        nonlocal count
        for row in old.rows(table):
            count += 1
            yield row

    new.add(table, count_rows())
    return count


def _digest(tables: Tables, table: str) -> str:
    """A checksum of a table; the same for each engine."""
    found = sha256()
    for row in tables.rows(table):
        for value in row:
            data = value if isinstance(value, bytes) else _plain(value).encode()
            found.update(b"%d:" % len(data))
            found.update(data)
    return found.hexdigest()


def _plain(value: object) -> str:
    """A value as text: one engine has numbers where another one has truth values."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)


def _check_tables(tables: Tables) -> Checked:
    check = Check(tables.epoch())
    while links := tables.links(check.after, CHAIN_PAGE):
        check.add(links)
    result = check.result()
    if not result.good:
        flaw = result.flaws[0]
        raise JournalError(
            f"the audit log of {tables.name} was changed (position {flaw.position}: {flaw.text}): "
            "it is not copied",
            code="damaged",
        )
    return result


def _last_position(tables: Tables) -> int:
    last = 0
    for row in tables.rows("events"):
        last = int(row[0])
    return last
