"""The journal in a file, as the hub uses it: appends go to the writer, queries to readers.

Owns the order on the event loop: a commit is published to the followers first, and then returned
to the caller of `append`. It knows no SQL.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from quarterdeck.domain.errors import JournalError, QuarterdeckError
from quarterdeck.journal.base import PAGE_EVENTS, AskRecord, Follower, Snapshot
from quarterdeck.journal.chain import Link
from quarterdeck.journal.follow import follow
from quarterdeck.journal.sqlite.file import Lock, explained_errors, prepare
from quarterdeck.journal.sqlite.reader import Reader
from quarterdeck.journal.sqlite.timing import CommitTimes
from quarterdeck.journal.sqlite.writer import Job, Result, Writer
from quarterdeck.journal.stored import (
    RawEvents,
    Stored,
    check_page,
    check_session,
    encode,
    size_of,
)
from quarterdeck.journal.tail import Tail
from quarterdeck.journal.usage import LimitState, UsageBy, UsageRow
from quarterdeck.journal.views import AskView, SessionView
from quarterdeck.protocol.events import Event, SessionDeleted
from quarterdeck.runtime.off_loop import off_loop

log = logging.getLogger(__name__)

READERS = 4
"""Pages that are read at the same time; more would only compete for the processor."""

CLOSE_SECONDS = 10.0
"""How long a running read may take when the journal is closed."""

TOLD_SECONDS = 5.0
"""How long to wait for the publication of a commit; it usually takes a thousandth of that."""

_Answer = TypeVar("_Answer")


class SqliteJournal:
    """A `Journal` in a file. Made by `open`, used on that event loop, closed by `close`."""

    def __init__(
        self, path: Path, lock: Lock, writer: Writer, *, clock: Callable[[], float]
    ) -> None:
        """Take over an open file; use `open` instead."""
        self._path = path
        self._lock = lock
        self._writer = writer
        self._clock = clock
        self._tail = Tail(writer.position, writer.heads)
        self._loop = asyncio.get_running_loop()
        self._limiter = CapacityLimiter(READERS)
        self._idle: list[Reader] = []
        self._closing = False
        self._closed = asyncio.Event()
        writer.start(self._tell)

    @classmethod
    async def open(cls, path: str | Path, *, clock: Callable[[], float] = time.time) -> Self:
        """Open the journal in this file, which is created if it is missing.

        Raises `JournalError` for a file that is in use, damaged, not ours, or of a newer version.
        """
        place = Path(path)
        # To the end, even if the caller was cancelled: otherwise the lock would stay held.
        with anyio.CancelScope(shield=True):
            lock, writer = await to_thread.run_sync(_opened, place)
        return cls(place, lock, writer, clock=clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def epoch(self) -> str:
        """The id of this journal; made with the file."""
        return self._writer.epoch

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self._tail.position

    @property
    def commit_times(self) -> CommitTimes:
        """The duration of commits since the journal was opened."""
        return self._writer.times

    def size(self) -> int:
        """The size of its files on disk in bytes. Blocks."""
        found = 0
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                found += self._path.with_name(self._path.name + suffix).stat().st_size
        return found

    # --- the events ----------------------------------------------------------------------------

    async def append(
        self, session: str, events: Sequence[Event], *, snapshot: bytes | None = None
    ) -> list[Stored]:
        """Store these events."""
        return await self._put(session, events, snapshot=snapshot)

    async def latest_snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot."""
        check_session(session)
        return await self._ask(lambda reader: reader.snapshot(session))

    async def read(self, session: str, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Stored]:
        """A page of a session's events."""
        check_session(session)
        limit = check_page(after, limit)
        found = await self._ask(lambda reader: reader.session(session, after, limit))
        if found:
            await self._is_told(session, found[-1].seq)
        return found

    async def passage(self, session: str, *, after: int = 0) -> RawEvents | None:
        """A session's events as text."""
        check_session(session)
        check_page(after, 1)
        return await self._passage(session, after)

    async def head(self, session: str) -> int:
        """The number of the session's last event."""
        check_session(session)
        self._check_open()
        return self._tail.heads.get(session, 0)

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen."""
        read, read_all = self._page, self._page_of_all
        return follow(self._tail, read, self._passage, read_all, cursors, after)

    # --- views ---------------------------------------------------------------------------------

    async def summaries(
        self, *, after: str | None = None, limit: int = 100, archived: bool | None = False
    ) -> list[SessionView]:
        """The sessions, newest first."""
        limit = check_page(0, limit)
        if after is not None:
            check_session(after)
        found = await self._ask(lambda reader: reader.views(after, limit, archived))
        for view in found:
            await self._is_told(view.session, view.head)
        return found

    async def summary(self, session: str) -> SessionView | None:
        """One session."""
        check_session(session)
        found = await self._ask(lambda reader: reader.view(session))
        if found is not None:
            await self._is_told(session, found.head)
        return found

    async def sizes(self) -> dict[str, int]:
        """The bytes of each session's events."""
        return await self._ask(lambda reader: reader.sizes())

    async def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""
        return await self._ask(lambda reader: reader.open_asks())

    async def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer, of the newest ones."""
        return await self._ask(lambda reader: reader.unanswered_asks())

    async def find_ask(self, ask: str) -> AskRecord | None:
        """A question by its id."""
        return await self._ask(lambda reader: reader.ask(ask))

    async def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had this prompt."""
        check_session(session)
        return await self._ask(lambda reader: reader.has_prompt(session, prompt))

    async def audit(
        self, *, after: int = 0, limit: int = PAGE_EVENTS, session: str | None = None
    ) -> list[Stored]:
        """The audit log."""
        limit = check_page(after, limit)
        return await self._ask(lambda reader: reader.audit(after, limit, session))

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> list[UsageRow]:
        """The usage."""
        return await self._ask(lambda reader: reader.usage(by, since, until))

    async def limits(self) -> list[LimitState]:
        """The limits of each account."""
        return await self._ask(lambda reader: reader.limits())

    async def links(self, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Link]:
        """A page of the audit log's chain."""
        limit = check_page(after, limit)
        return await self._ask(lambda reader: reader.links(after, limit))

    # --- the end -------------------------------------------------------------------------------

    async def delete(self, session: str, *, by: str) -> Stored:
        """Delete a session, in one transaction: a very large one delays other appends."""
        stored = await self._put(session, [SessionDeleted(by=by)], forget=True)
        return stored[0]

    async def close(self) -> None:
        """Store what is queued, end the thread, and close the file."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._writer.finish)
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

    # --- writing -------------------------------------------------------------------------------

    async def _put(
        self,
        session: str,
        events: Sequence[Event],
        *,
        forget: bool = False,
        snapshot: bytes | None = None,
    ) -> list[Stored]:
        check_session(session)
        encoded = await off_loop(size_of(events), encode, events)
        self._check_open()
        done: asyncio.Future[list[Stored]] = self._loop.create_future()
        at = int(self._clock() * 1000)
        job = Job(session=session, at=at, encoded=encoded, done=done, forget=forget)
        job.snapshot = snapshot
        self._writer.put(job)
        return await done

    def _tell(self, results: list[Result]) -> None:
        """Called by the writer."""
        try:
            self._loop.call_soon_threadsafe(self._told, results)
        except RuntimeError:
            log.warning("the event loop ended before the journal %s was closed", self._path)

    def _told(self, results: list[Result]) -> None:
        for result in results:
            job, outcome = result.job, result.outcome
            if isinstance(outcome, QuarterdeckError):
                if not job.done.done():
                    job.done.set_exception(outcome)
                continue
            if job.forget:
                self._tail.forget()
            self._tail.publish(outcome)
            if not job.done.done():
                job.done.set_result(outcome)

    # --- reading -------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closing:
            raise JournalError(f"the journal {self._path} is closed", code="closed")

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

    async def _is_told(self, session: str, seq: int) -> None:
        """Wait until what was read is published to followers.

        A commit can be read a moment before this thread learns of it. A caller that has read an
        event may follow from it, and its number must not be refused.
        """
        if self._tail.heads.get(session, 0) < seq:
            with anyio.move_on_after(TOLD_SECONDS):
                while self._tail.heads.get(session, 0) < seq and not self._tail.closed:
                    await self._tail.wait((session,))

    async def _page(self, session: str, after: int, limit: int) -> list[Stored]:
        return await self._ask(lambda reader: reader.session(session, after, limit))

    async def _passage(self, session: str, after: int) -> RawEvents | None:
        return await self._ask(lambda reader: reader.passage(session, after))

    async def _page_of_all(self, after: int, limit: int) -> list[Stored]:
        return await self._ask(lambda reader: reader.everything(after, limit))


def _opened(path: Path) -> tuple[Lock, Writer]:
    lock = Lock(path)
    try:
        prepare(path)
        with explained_errors(path):
            return lock, Writer(path)
    except BaseException:
        lock.release()
        raise
