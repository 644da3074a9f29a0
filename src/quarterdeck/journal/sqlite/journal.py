"""The journal in a file, as the hub uses it: what of it is about the file.

A file belongs to one process, unless all open it as shared: then each sees what the others append,
a moment later. That is for programs that look at a journal together, and costs a look at the file
every `POLL_SECONDS`; several hubs want PostgreSQL.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from quarterdeck.journal.arrivals import Arrivals
from quarterdeck.journal.journal_threads import ThreadedJournal
from quarterdeck.journal.shared_records import SharingRecords
from quarterdeck.journal.sqlite.file import Lock, explained_errors, prepare
from quarterdeck.journal.sqlite.reader import Reader
from quarterdeck.journal.sqlite.shared_records import SqliteRecords
from quarterdeck.journal.sqlite.writer import Writer
from quarterdeck.journal.tail import Tail

READERS = 4
"""Pages that are read at the same time; more would only compete for the processor."""

CLOSE_SECONDS = 10.0
"""How long a running read may take when the journal is closed."""

POLL_SECONDS = 0.05
"""How often a shared file is looked at."""

_Answer = TypeVar("_Answer")


class SqliteJournal(ThreadedJournal):
    """A `Journal` in a file. Made by `open`, used on that event loop, closed by `close`."""

    def __init__(
        self,
        path: Path,
        lock: Lock,
        writer: Writer,
        *,
        clock: Callable[[], float],
        shared: bool = False,
    ) -> None:
        """Take over an open file; use `open` instead."""
        super().__init__(path, writer, Tail(writer.position, writer.heads), clock)
        self._path = path
        self._lock = lock
        self._writer = writer
        self._limiter = CapacityLimiter(READERS)
        self._idle: list[Reader] = []
        if shared:
            self._arrivals = Arrivals(self._tail, self._page_of_all, POLL_SECONDS)
        writer.start(self._report)

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.time,
        shared: bool = False,
    ) -> Self:
        """Open the journal in this file, which is created if it is missing.

        `shared`: other processes may open it, too, as shared.

        Raises `JournalError` for a file that is in use, damaged, not ours, or of a newer version.
        """
        place = Path(path)
        # To the end, even if the caller was cancelled: otherwise the lock would stay held.
        with anyio.CancelScope(shield=True):
            lock, writer = await to_thread.run_sync(_open_writer, place, clock, shared)
        return cls(place, lock, writer, clock=clock, shared=shared)

    def size(self) -> int:
        """The size of its files on disk in bytes. Blocks."""
        found = 0
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                found += self._path.with_name(self._path.name + suffix).stat().st_size
        return found

    async def close(self) -> None:
        """Store what is queued, end the thread, and close the file."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._writer.finish)
            if self._arrivals is not None:
                await self._arrivals.close()
            self._tail.close()
            await self._end_readers()
            await to_thread.run_sync(self._writer.close)
            self._lock.release()
            self._closed.set()

    async def _end_readers(self) -> None:
        """Wait for the running reads; waiting ones are refused."""
        holders = [object() for _ in range(READERS)]
        held: list[object] = []
        with anyio.move_on_after(CLOSE_SECONDS):
            for holder in holders:
                await self._limiter.acquire_on_behalf_of(holder)
                held.append(holder)
        while self._idle:
            self._idle.pop().close()
        for holder in held:
            self._limiter.release_on_behalf_of(holder)

    async def _look(self, question: Callable[[SharingRecords], _Answer]) -> _Answer:
        return await self._ask(
            lambda reader: question(SqliteRecords(reader.connection, self._clock))
        )

    async def _ask(self, question: Callable[[Reader], _Answer]) -> _Answer:
        self._check_open()
        return await to_thread.run_sync(self._answer, question, limiter=self._limiter)

    def _answer(self, question: Callable[[Reader], _Answer]) -> _Answer:
        self._check_open()
        with explained_errors(self._path):
            reader = self._idle.pop() if self._idle else Reader(self._path)
            try:
                answer = question(reader)
            except BaseException:
                reader.close()
                raise
            self._idle.append(reader)
            return answer


def _open_writer(path: Path, clock: Callable[[], float], shared: bool) -> tuple[Lock, Writer]:
    lock = Lock(path, shared=shared)
    try:
        prepare(path)
        with explained_errors(path):
            return lock, Writer(path, clock=clock, shared=shared)
    except BaseException:
        lock.release()
        raise
