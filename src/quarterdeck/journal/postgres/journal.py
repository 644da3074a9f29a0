"""The journal in PostgreSQL, as the hub uses it: what of it is about the database.

Several hubs may have it open at once. Each sees what the others append a moment later: they signal
each other, and look every `POLL_SECONDS` anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TypeVar

import anyio
import psycopg
from anyio import CapacityLimiter, to_thread

from quarterdeck.domain.errors import JournalError
from quarterdeck.domain.ids import new_id
from quarterdeck.journal.arrivals import Arrivals
from quarterdeck.journal.journal_threads import ThreadedJournal
from quarterdeck.journal.ownership import Lease
from quarterdeck.journal.postgres.address import Address, explain_error, explained_errors, is_lost
from quarterdeck.journal.postgres.reader import Reader
from quarterdeck.journal.postgres.refold import LEASE, LEASE_SECONDS, has_old_views, refold_old
from quarterdeck.journal.postgres.schema import open_transaction
from quarterdeck.journal.postgres.shared_records import PostgresRecords
from quarterdeck.journal.postgres.signals import Signals
from quarterdeck.journal.postgres.writer import AWAY_SECONDS, RETRY_SECONDS, Writer
from quarterdeck.journal.shared_records import SharingRecords
from quarterdeck.journal.tail import Tail
from quarterdeck.journal.transaction import Result

READERS = 4
"""Pages that are read at the same time."""

CLOSE_SECONDS = 10.0
"""How long a running read may take when the journal is closed."""

POLL_SECONDS = 1.0
"""How often the database is looked at without a signal."""

SILENT_SECONDS = 15.0
"""A database that answered nothing for so long is away, although its connections are open."""

_Answer = TypeVar("_Answer")


class PostgresJournal(ThreadedJournal):
    """A `Journal` in a database. Made by `open`, used on that event loop, closed by `close`."""

    def __init__(self, address: Address, writer: Writer, *, clock: Callable[[], float]) -> None:
        """Take over an open writer; use `open` instead."""
        super().__init__(address, writer, Tail(writer.position, writer.heads), clock)
        self._address = address
        self._writer = writer
        self._limiter = CapacityLimiter(READERS)
        self._idle: list[Reader] = []
        self._away: JournalError | None = None
        """Why the last attempt to read failed, if the database was away."""
        self._answered = time.monotonic()
        """When the database answered last. It is asked every `POLL_SECONDS`."""
        self._arrivals = arrivals = Arrivals(self._tail, self._page_of_all, POLL_SECONDS)
        self._signals = Signals(
            address, lambda: _soon(lambda: self._loop.call_soon_threadsafe(arrivals.wake))
        )
        writer.start(self._note_commit)

    @classmethod
    async def open(
        cls, url: str, *, password: str | None = None, clock: Callable[[], float] = time.time
    ) -> Self:
        """Open the journal in this database; its tables are made if they are missing.

        Raises `UsageError` for an invalid address, `JournalError` for a database that does not
        answer, refuses the user, is too old, or was written by a newer version.
        """
        address = Address(url, password)
        # To the end, even if the caller was cancelled: otherwise the connection would stay.
        with anyio.CancelScope(shield=True):
            writer = await to_thread.run_sync(_open_writer, address)
        journal = cls(address, writer, clock=clock)
        await journal._refold()
        return journal

    @property
    def trouble(self) -> JournalError | None:
        """Why nothing works now: the database is another one, or does not answer."""
        if self._writer.broken is not None:
            return self._writer.broken
        if self._away is None and time.monotonic() - self._answered > SILENT_SECONDS:
            text = f"the journal {self._address}: the database does not answer"
            return JournalError(text, code="away")
        return self._away

    def size(self) -> int:
        """The size of its tables on disk in bytes. Blocks."""
        return self._answer(lambda reader: reader.bytes_on_disk())

    async def close(self) -> None:
        """Store what is queued, end the threads, and close the connections."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._writer.finish)
            if self._arrivals is not None:
                await self._arrivals.close()
            self._tail.close()
            await to_thread.run_sync(self._signals.close)
            await self._end_readers()
            await to_thread.run_sync(self._writer.close)
            self._closed.set()

    def _note_commit(self, results: list[Result]) -> None:
        """Called by the writer."""
        self._report(results)
        self._signals.notify()

    async def _refold(self) -> None:
        """Fold the views of older versions again, unless another hub does."""
        if not await self._ask(has_old_views):
            return
        lease = await self.take_lease(LEASE, new_id(), LEASE_SECONDS)
        if lease is None:
            return
        try:
            await to_thread.run_sync(self._answer, lambda reader: self._refold_by(reader, lease))
        finally:
            await self.release_lease(lease)

    def _refold_by(self, reader: Reader, lease: Lease) -> int:
        records = PostgresRecords(reader.connection)

        def holds() -> bool:
            with open_transaction(reader.connection, self._address):
                return records.renew_lease(lease, LEASE_SECONDS)

        return refold_old(reader, self._address, holds)

    # --- reading -------------------------------------------------------------------------------

    async def _look(self, question: Callable[[SharingRecords], _Answer]) -> _Answer:
        return await self._ask(lambda reader: question(PostgresRecords(reader.connection)))

    async def _ask(self, question: Callable[[Reader], _Answer]) -> _Answer:
        self._check_open()
        return await to_thread.run_sync(self._answer, question, limiter=self._limiter)

    def _answer(self, question: Callable[[Reader], _Answer]) -> _Answer:
        """Ask on a connection that works; wait a while for a database that is away."""
        deadline = time.monotonic() + AWAY_SECONDS
        while True:
            self._check_open()
            if self._writer.broken is not None:
                raise self._writer.broken
            try:
                answer = self._ask_reader(question)
            except psycopg.Error as error:
                reason = explain_error(error, self._address)
                if reason.code == "away":
                    self._away = reason
                if reason.code != "away" or time.monotonic() > deadline:
                    raise reason from error
                time.sleep(RETRY_SECONDS)
            else:
                self._away, self._answered = None, time.monotonic()
                return answer

    def _ask_reader(self, question: Callable[[Reader], _Answer]) -> _Answer:
        reader = self._idle.pop() if self._idle else self._connect_reader()
        try:
            answer = question(reader)
        except BaseException as error:
            lost = isinstance(error, psycopg.Error) and is_lost(error, reader.connection)
            reader.close()
            if lost:
                self._drop_idle()  # they are as old
                raise psycopg.OperationalError(str(error)) from error
            raise
        self._idle.append(reader)
        return answer

    def _connect_reader(self) -> Reader:
        connection = self._address.connect()
        try:
            self._writer.check_identity(connection)
        except BaseException:
            connection.close()
            raise
        return Reader(self._address, connection)

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _end_readers(self) -> None:
        """Wait for the running reads; waiting ones are refused."""
        holders = [object() for _ in range(READERS)]
        held: list[object] = []
        with anyio.move_on_after(CLOSE_SECONDS):
            for holder in holders:
                await self._limiter.acquire_on_behalf_of(holder)
                held.append(holder)
        self._drop_idle()
        for holder in held:
            self._limiter.release_on_behalf_of(holder)


def _open_writer(address: Address) -> Writer:
    with explained_errors(address):
        return Writer(address)


def _soon(call: Callable[[], object]) -> None:
    """Call the event loop from a thread, unless it has ended."""
    try:
        call()
    except RuntimeError:
        return
