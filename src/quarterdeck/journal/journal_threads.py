"""A journal with a writer thread and reader threads, as the hub uses it.

Owns the order on the event loop: a commit is published to the followers first, and then returned
to the caller of `append`. Appends go to the writer's queue, queries to readers. The engines that
have tables share it; it knows no SQL.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Protocol, Self, TypeVar

import anyio

from quarterdeck.domain.errors import JournalError, QuarterdeckError
from quarterdeck.journal.arrivals import Arrivals, Commit
from quarterdeck.journal.audit_pages import SEARCHED, page_of_kind
from quarterdeck.journal.base import PAGE_EVENTS, AskRecord, Follower, Snapshot
from quarterdeck.journal.chain import Link
from quarterdeck.journal.commit_times import CommitTimes
from quarterdeck.journal.event_codec import Encoded, check_page, check_session, encode, size_of
from quarterdeck.journal.follow import follow
from quarterdeck.journal.ownership import Conditions, Lease, conditions_of
from quarterdeck.journal.shared_records import SharingJournal, SharingRecords
from quarterdeck.journal.tail import Tail
from quarterdeck.journal.transaction import Job, Result
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.events import Event, SessionDeleted
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import RawEvents, Stored
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow
from quarterdeck.protocol.views import AskView
from quarterdeck.runtime.off_loop import off_loop

log = logging.getLogger(__name__)

TOLD_SECONDS = 5.0
"""How long to wait for the publication of a commit; it usually takes a thousandth of that."""

_Answer = TypeVar("_Answer")


class Queries(Protocol):
    """A reader of an engine: each query is a page. Blocking, for one thread at a time."""

    def session(self, session: str, after: int, limit: int) -> list[Stored]:
        """A page of a session's events."""

    def raw_events(self, session: str, after: int) -> RawEvents | None:
        """A session's events as text."""

    def everything(self, after: int, limit: int) -> list[Stored]:
        """A page of all events."""

    def snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot of a session."""

    def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had this prompt."""

    def audit(
        self, after: int, limit: int, session: str | None, before: int | None = None
    ) -> list[Stored]:
        """A page of the audit log; with `before` the newest entries before it, newest first."""

    def links(self, after: int, limit: int) -> list[Link]:
        """A page of the audit log's chain."""

    def views(self, after: str | None, limit: int, archived: bool | None) -> list[SessionView]:
        """A page of sessions."""

    def view(self, session: str) -> SessionView | None:
        """One session."""

    def sizes(self) -> dict[str, int]:
        """The bytes of each session's events."""

    def open_asks(self) -> list[AskView]:
        """All open questions."""

    def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer."""

    def ask(self, ask: str) -> AskRecord | None:
        """A question by its id."""

    def usage(self, by: UsageBy, since: int | None, until: int | None) -> list[UsageRow]:
        """The usage."""

    def limits(self) -> list[LimitState]:
        """The limits of each account."""


class Writing(Protocol):
    """The writer of an engine."""

    epoch: str
    times: CommitTimes

    def put(self, job: Job) -> None:
        """Queue a job."""


class ThreadedJournal(SharingJournal):
    """What the engines with tables have in common."""

    def __init__(
        self, name: object, writer: Writing, tail: Tail, clock: Callable[[], float]
    ) -> None:
        self._name = name
        self._jobs = writer
        self._tail = tail
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._closing = False
        self._closed = asyncio.Event()
        self._arrivals: Arrivals | None = None

    @abstractmethod
    async def _ask(self, question: Callable[[Queries], _Answer]) -> _Answer:
        """Ask a reader."""

    @abstractmethod
    def size(self) -> int:
        """The size of the journal on disk in bytes. Blocks."""

    @abstractmethod
    async def close(self) -> None:
        """Store what is queued, and close."""

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
        """The id of this journal."""
        return self._jobs.epoch

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self._tail.position

    @property
    def commit_times(self) -> CommitTimes:
        """The duration of commits since the journal was opened."""
        return self._jobs.times

    # --- the events ----------------------------------------------------------------------------

    async def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        snapshot: bytes | None = None,
        after: int | None = None,
        fence: int | None = None,
        claim: str | None = None,
        lease: Lease | None = None,
    ) -> list[Stored]:
        """Store these events."""
        conditions = conditions_of(after, fence, claim, lease)
        return await self._put(session, events, snapshot=snapshot, conditions=conditions)

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
            await self._is_published(session, found[-1].seq)
        return found

    async def raw_events(self, session: str, *, after: int = 0) -> RawEvents | None:
        """A session's events as text."""
        check_session(session)
        check_page(after, 1)
        return await self._raw_events(session, after)

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
        return follow(self._tail, read, self._raw_events, read_all, cursors, after)

    async def reaches(self, position: int) -> bool:
        """Whether it has come to this position."""
        tail, arrivals = self._tail, self._arrivals
        if position <= tail.position or arrivals is None:
            return position <= tail.position
        arrivals.wake()
        if not await self._page_of_all(position - 1, 1):
            return False
        with anyio.move_on_after(TOLD_SECONDS):
            while tail.position < position and not tail.closed:
                await tail.wait(None)
        return position <= tail.position

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
            await self._is_published(view.session, view.head)
        return found

    async def summary(self, session: str) -> SessionView | None:
        """One session."""
        check_session(session)
        found = await self._ask(lambda reader: reader.view(session))
        if found is not None:
            await self._is_published(session, found.head)
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
        self,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = PAGE_EVENTS,
        session: str | None = None,
    ) -> list[Stored]:
        """The audit log."""
        limit = check_page(after, limit, before)
        return await self._ask(lambda reader: reader.audit(after, limit, session, before))

    async def audit_page(
        self,
        kind: AuditKind,
        *,
        before: int,
        after: int = 0,
        limit: int = PAGE_EVENTS,
        session: str | None = None,
    ) -> AuditPage:
        """Entries of one kind in the audit log."""
        limit = check_page(after, limit, before)
        return await self._ask(
            lambda reader: page_of_kind(reader.audit(after, SEARCHED, session, before), kind, limit)
        )

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

    async def delete(
        self,
        session: str,
        *,
        by: str,
        after: int | None = None,
        fence: int | None = None,
        claim: str | None = None,
        lease: Lease | None = None,
    ) -> Stored:
        """Delete a session, in one transaction: a very large one delays other appends."""
        conditions = conditions_of(after, fence, claim, lease)
        stored = await self._put(
            session, [SessionDeleted(by=by)], forget=True, conditions=conditions
        )
        return stored[0]

    # --- writing -------------------------------------------------------------------------------

    async def _put(
        self,
        session: str,
        events: Sequence[Event],
        *,
        forget: bool = False,
        snapshot: bytes | None = None,
        conditions: Conditions | None = None,
    ) -> list[Stored]:
        check_session(session)
        encoded = await off_loop(size_of(events), encode, events)
        self._check_open()
        done: asyncio.Future[list[Stored]] = self._loop.create_future()
        at = int(self._clock() * 1000)
        job = Job(session=session, at=at, encoded=encoded, done=done, forget=forget)
        job.snapshot = snapshot
        job.conditions = conditions
        self._jobs.put(job)
        return await done

    async def _change(self, work: Callable[[SharingRecords], _Answer]) -> _Answer:
        self._check_open()
        answers: list[_Answer] = []
        done: asyncio.Future[list[Stored]] = self._loop.create_future()
        job = Job(session="", at=0, encoded=Encoded(events=[], lines=[]), done=done)
        job.work = lambda records: answers.append(work(records))
        self._jobs.put(job)
        await done
        return answers[-1]  # a group that failed was tried again

    def _report(self, results: list[Result]) -> None:
        """Called by the writer."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, results)
        except RuntimeError:
            log.warning("the event loop ended before the journal %s was closed", self._name)

    def _deliver(self, results: list[Result]) -> None:
        for result in results:
            job, outcome = result.job, result.outcome
            if isinstance(outcome, QuarterdeckError):
                if not job.done.done():
                    job.done.set_exception(outcome)
                continue
            if self._arrivals is not None:
                self._arrivals.commit(Commit(outcome, partial(_return, job, outcome)))
                continue
            if job.forget:
                self._tail.forget()
            self._tail.publish(outcome)
            _return(job, outcome)

    # --- reading -------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closing:
            raise JournalError(f"the journal {self._name} is closed", code="closed")

    async def _is_published(self, session: str, seq: int) -> None:
        """Wait until what was read is published to followers.

        A commit can be read a moment before this thread learns of it. A caller that has read an
        event may follow from it, and its number must not be refused.
        """
        if self._tail.heads.get(session, 0) < seq:
            if self._arrivals is not None:
                self._arrivals.wake()
            with anyio.move_on_after(TOLD_SECONDS):
                while self._tail.heads.get(session, 0) < seq and not self._tail.closed:
                    await self._tail.wait((session,))

    async def _page(self, session: str, after: int, limit: int) -> list[Stored]:
        return await self._ask(lambda reader: reader.session(session, after, limit))

    async def _raw_events(self, session: str, after: int) -> RawEvents | None:
        return await self._ask(lambda reader: reader.raw_events(session, after))

    async def _page_of_all(self, after: int, limit: int) -> list[Stored]:
        return await self._ask(lambda reader: reader.everything(after, limit))


def _return(job: Job, outcome: list[Stored]) -> None:
    if not job.done.done():
        job.done.set_result(outcome)
