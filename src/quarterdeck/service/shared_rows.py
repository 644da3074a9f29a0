"""The rows of a small SQLite file, kept alike for several hubs by the journal's store.

Owns the way of rows between a file (`runtime.shared_tables`) and the store. A change is in the
store before it is committed in the file, so no hub tells a person what the others do not know, and
what a killed hub has committed is theirs. Of two hubs that change the same row one is first, and
the other does it again on top of that. A file from before its hub joined others is taken over once:
the others get the rows that they do not have, and a copy of the file stays as `NAME.alone`.

Where one hub works for all, the store refuses what a hub writes that lost the lease. `LeasedRows`
is for a file that only this hub uses, in its event loop: the store has its rows when it asks for
that, before it does what others would see. It knows neither tables nor what the rows mean.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from quarterdeck.domain.errors import Conflict, JournalError
from quarterdeck.journal.base import Journal, SharedChanges
from quarterdeck.journal.ownership import lease_for
from quarterdeck.journal.shared_records import LARGEST_VALUE
from quarterdeck.runtime.shared_tables import Incoming, Row, RowConflict, Tables
from quarterdeck.runtime.sqlite_files import transaction

log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

NAMESPACE = "rows"
LOOK_SECONDS = 0.5
"""How often each file is compared with the store."""
WAIT_SECONDS = 30.0
"""How long a change waits for the store. The journal itself gives up earlier."""
FORGET_SECONDS = 3600.0
"""How long the store remembers removed rows, at least. A hub that was away for longer takes all."""
JOIN_TRIES = 20
_NO_SESSION = "no-session"
PART_BYTES = LARGEST_VALUE // 8
"""Rows of one transaction of `LeasedRows`, but for one that is larger alone."""


class SharedRows:
    """The rows of one file, for `SqliteFile`. Made in the event loop; used in other threads."""

    def __init__(
        self,
        journal: Journal,
        path: Path,
        *,
        duty: str = "",
        joined: Callable[[sqlite3.Connection], None] = lambda _: None,
    ) -> None:
        """`duty`: the work under whose lease rows are written. `joined` mends what was united."""
        self._journal = journal
        self._path = path
        self._space = f"{NAMESPACE}/{path.name}"
        self._duty = duty
        self._joined = joined
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._tables: Tables | None = None
        self._told_failure = False
        self.changed: Callable[[Sequence[Row]], None] = lambda _: None
        """Called in the event loop with rows that other hubs have changed."""

    # --- for the file ----------------------------------------------------------------------------

    def note_open(self, connection: sqlite3.Connection) -> None:
        """Note its changes from now on."""
        self._tables = Tables(connection)

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Put in what other hubs have changed. Without the store the file is read as it is."""
        if threading.get_ident() == self._thread:
            return  # the loop cannot wait for itself; it looks at its own file
        tables = self._need()
        try:
            seen = tables.seen_version(self._journal.epoch)
            if seen is None:
                self._join(connection, tables)
                return
            found = self._wait(self._journal.shared_changes(self._space, after=seen))
        except JournalError as error:
            if not self._told_failure:
                log.error("%s: what other hubs changed is not known: %s", self._path.name, error)
            self._told_failure = True
            return
        self._told_failure = False
        if found.changes or found.whole:
            with transaction(connection):
                new = self._take(tables, found)
            if new:
                self._loop.call_soon_threadsafe(self.changed, new)

    def publish(self, connection: sqlite3.Connection) -> None:  # noqa: ARG002 - its own tables
        """Store what this transaction has changed. Raises `RowConflict`, `JournalError`."""
        tables = self._need()
        rows = tables.changed_rows()
        if not rows:
            return
        try:
            version = self._wait(
                self._journal.share_all(
                    self._space,
                    rows,
                    expected=tables.known_versions(rows),
                    lease=lease_for(self._duty),
                )
            )
        except Conflict as error:
            raise RowConflict from error
        tables.note_stored(rows, version)

    def confirm(self) -> None:
        """Raises `StaleLease` if another hub does the work by now."""
        if (lease := lease_for(self._duty)) is not None:
            # Without events nothing is stored: only the lease is looked at.
            self._wait(self._journal.append(_NO_SESSION, [], lease=lease))

    # --- in the background -----------------------------------------------------------------------

    async def run(self, look: Callable[[], None]) -> None:
        """See what other hubs change, again and again. `look` looks at the file; it blocks."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            try:
                await anyio.to_thread.run_sync(look)
            except (JournalError, sqlite3.Error, OSError) as error:
                log.error("%s is not shared with other hubs: %s", self._path.name, error)
                await anyio.sleep(4 * LOOK_SECONDS)

    async def keep_small(self) -> None:
        """Have the store forget rows that were removed long ago, again and again."""
        await _keep_small(self._journal, self._space)

    # --- inside ----------------------------------------------------------------------------------

    def _take(self, tables: Tables, found: SharedChanges) -> list[Row]:
        new = tables.take(_incoming_rows(found), whole=found.whole)
        if found.changes:
            tables.see(self._journal.epoch, max(each.version for each in found.changes))
        return new

    def _join(self, connection: sqlite3.Connection, tables: Tables) -> None:
        """The first time in this journal: have what the others have, and give them the rest."""
        for _ in range(JOIN_TRIES):
            found = self._wait(self._journal.shared_changes(self._space))
            others = any(each.value is not None for each in found.changes)
            kept = others and tables.has_rows()
            if kept:
                keep_copy(connection, self._path)
            try:
                with transaction(connection):
                    lost = tables.join(_incoming_rows(found) if others else ())
                    if others:
                        self._joined(connection)
                    last = max((each.version for each in found.changes), default=0)
                    tables.see(self._journal.epoch, last)
                    self.publish(connection)
            except RowConflict:
                continue
            if kept and lost:
                log.warning(
                    "%s: %d rows are those of the other hubs; the old file is kept as %s.alone",
                    self._path.name,
                    lost,
                    self._path.name,
                )
            return
        raise JournalError(f"{self._path.name}: other hubs change it all the time")

    def _need(self) -> Tables:
        if self._tables is None:
            raise JournalError(f"{self._path.name} is not open")
        return self._tables

    def _wait(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Have the event loop do something, from another thread."""
        if threading.get_ident() == self._thread or self._loop.is_closed():
            work.close()
            raise JournalError(f"{self._path.name} cannot be shared from here")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(WAIT_SECONDS)
        except TimeoutError as error:
            future.cancel()
            raise JournalError(f"{self._path.name}: the store does not answer") from error


class LeasedRows:
    """The rows of a file that one hub at a time uses, under a lease and in its event loop."""

    def __init__(self, journal: Journal, path: Path, duty: str) -> None:
        self._journal = journal
        self._path = path
        self._space = f"{NAMESPACE}/{path.name}"
        self._duty = duty
        self._tables: Tables | None = None
        self._lock = anyio.Lock()

    async def join(self, connection: sqlite3.Connection) -> None:
        """Have what the store has. A file that was never shared is taken over into it."""
        tables = self._tables = Tables(connection)
        found = await self._journal.shared_changes(self._space)
        others = [each for each in _incoming_rows(found) if each.row is not None]
        first = tables.seen_version(self._journal.epoch) is None
        if first and others and tables.has_rows():
            await anyio.to_thread.run_sync(keep_copy, connection, self._path)
        with transaction(connection):
            if others and not first:
                tables.reset(others)
            elif first:
                tables.join(others)
            tables.see(self._journal.epoch, 0)
        await self.keep()

    async def keep(self) -> None:
        """Store what was changed so far. Raises `StaleLease`, and `JournalError`."""
        tables = self._tables
        if tables is None:
            raise JournalError(f"{self._path.name} is not open")
        async with self._lock:
            for part in _parts(tables.changed_rows()):
                lease = lease_for(self._duty)
                version = await self._journal.share_all(self._space, part, lease=lease)
                with transaction(tables.connection):
                    tables.note_stored(part, version)

    async def keep_small(self) -> None:
        """Have the store forget rows that were removed long ago, again and again."""
        await _keep_small(self._journal, self._space)


def _parts(rows: dict[str, bytes | None]) -> Iterator[dict[str, bytes | None]]:
    """The rows in parts that the store takes."""
    part: dict[str, bytes | None] = {}
    size = 0
    for name, row in rows.items():
        if part and size + len(row or b"") > PART_BYTES:
            yield part
            part, size = {}, 0
        part[name] = row
        size += len(row or b"")
    if part:
        yield part


def keep_copy(connection: sqlite3.Connection, path: Path) -> None:
    """Keep the file as it is now, as `NAME.alone`; the first one stays."""
    aside = path.with_name(f"{path.name}.alone")
    if aside.exists():
        return
    aside.touch(mode=0o600)
    copy = sqlite3.connect(aside)
    try:
        connection.backup(copy)
    finally:
        copy.close()


async def _keep_small(journal: Journal, space: str) -> None:
    past = 0
    while True:
        try:
            if past:
                await journal.forget_removed(space, before=past)
            past = await journal.shared_version(space)
        except JournalError as error:
            log.error("%s: removed rows are still stored: %s", space, error)
        await anyio.sleep(FORGET_SECONDS)


def _incoming_rows(found: SharedChanges) -> list[Incoming]:
    return [Incoming(id=each.key, row=each.value, version=each.version) for each in found.changes]
