"""A journal in memory, for tests: like the one in a file, but not durable.

`beside` opens a second journal on the same memory, as two hubs have on one database.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import anyio.lowlevel
from msgspec import Struct, field
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError, NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.journal.audit_pages import SEARCHED, page_of_kind
from quarterdeck.journal.base import ASKS_SEARCHED, PAGE_EVENTS, AskRecord, Follower, Snapshot
from quarterdeck.journal.chain import Link, digest_of, genesis, is_audited, is_chained, seal_of
from quarterdeck.journal.event_codec import (
    Encoded,
    check_page,
    check_session,
    encode,
    page,
    place_events,
    raw_events,
)
from quarterdeck.journal.follow import follow
from quarterdeck.journal.memory_records import MemoryRecords
from quarterdeck.journal.ownership import Conditions, Lease, conditions_of
from quarterdeck.journal.shared_records import SharingJournal, SharingRecords
from quarterdeck.journal.tail import Tail
from quarterdeck.journal.usage import UsageSums
from quarterdeck.journal.views import fold
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.events import AskAnswered, Event, PromptQueued, SessionDeleted
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL
from quarterdeck.protocol.stored_events import RawEvents, Stored, stored_size
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow
from quarterdeck.protocol.views import AskView


class _Session(Struct):
    view: SessionView
    events: list[Stored] = field(default_factory=list)
    snapshot: Snapshot | None = None


_Answer = TypeVar("_Answer")


class _Memory:
    """What journals beside each other have in common."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.epoch = new_id()
        self.sessions: dict[str, _Session] = {}
        self.events: list[Stored] = []
        self.asks: dict[str, AskRecord] = {}
        self.links: list[Link] = []
        self.usage = UsageSums()
        self.position = 0
        self.records = MemoryRecords(clock, self._runs)
        self.tails: list[Tail] = []

    def _runs(self) -> dict[str, str | None]:
        views = (session.view for session in self.sessions.values())
        return {
            view.session: None if view.run is None else view.machine or LOCAL
            for view in views
            if not view.deleted
        }


class MemoryJournal(SharingJournal):
    """A `Journal` that is lost with the process."""

    def __init__(
        self, *, clock: Callable[[], float] = time.time, memory: _Memory | None = None
    ) -> None:
        self._clock = clock
        self._memory = memory or _Memory(clock)
        heads = {name: known.view.head for name, known in self._memory.sessions.items()}
        self._tail = Tail(self._memory.position, heads)
        self._memory.tails.append(self._tail)

    def beside(self) -> MemoryJournal:
        """Another journal on the same memory."""
        return MemoryJournal(clock=self._clock, memory=self._memory)

    @property
    def epoch(self) -> str:
        """The id of this journal."""
        return self._memory.epoch

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self._tail.position

    async def reaches(self, position: int) -> bool:
        """Whether it has come to this position."""
        return position <= self.position

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
        check_session(session)
        conditions = conditions_of(after, fence, claim, lease)
        encoded = encode(events)
        await self._open()
        known = self._memory.sessions.get(session)
        if known is not None and known.view.deleted:
            raise NotFound("session", session)
        self._check(conditions, session, known, events)
        stored = self._add(session, encoded)
        known = self._memory.sessions.get(session)
        if known is not None and known.view.run is None:
            known.snapshot = None
        elif known is not None and snapshot is not None:
            known.snapshot = Snapshot(seq=known.view.head, data=snapshot)
        return stored

    def _check(
        self,
        conditions: Conditions | None,
        session: str,
        known: _Session | None,
        events: Sequence[Event],
    ) -> None:
        if conditions is not None:
            head = 0 if known is None else known.view.head
            running = known is not None and known.view.run is not None
            self._memory.records.admit(conditions, session, head, running, events)

    async def latest_snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot."""
        check_session(session)
        await self._open()
        known = self._memory.sessions.get(session)
        return None if known is None else known.snapshot

    async def read(self, session: str, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Stored]:
        """A page of a session's events."""
        check_session(session)
        limit = check_page(after, limit)
        await self._open()
        known = self._memory.sessions.get(session)
        if known is None:
            return []
        start = bisect_right(known.events, after, key=lambda stored: stored.seq)
        return page(islice(known.events, start, None), limit, stored_size)

    async def raw_events(self, session: str, *, after: int = 0) -> RawEvents | None:
        """A session's events as text."""
        stored = await self.read(session, after=after)
        return raw_events(
            session, ((each.seq, each.position, each.at, each.json) for each in stored)
        )

    async def head(self, session: str) -> int:
        """The number of the session's last event."""
        check_session(session)
        await self._open()
        return self._tail.heads.get(session, 0)

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen."""
        read, read_all = self._page, self._page_of_all
        return follow(self._tail, read, self._raw_events, read_all, cursors, after)

    async def summaries(
        self, *, after: str | None = None, limit: int = 100, archived: bool | None = False
    ) -> list[SessionView]:
        """The sessions, newest first."""
        limit = check_page(0, limit)
        await self._open()
        names = list(reversed(self._memory.sessions))
        if after is not None:
            names = names[names.index(after) + 1 :] if after in self._memory.sessions else []
        views = (self._memory.sessions[name].view for name in names)
        listed = (view for view in views if not view.deleted and archived in {None, view.archived})
        return [view for view, _ in zip(listed, range(limit), strict=False)]

    async def summary(self, session: str) -> SessionView | None:
        """One session."""
        check_session(session)
        await self._open()
        known = self._memory.sessions.get(session)
        return None if known is None or known.view.deleted else known.view

    async def sizes(self) -> dict[str, int]:
        """The bytes of each session's events."""
        await self._open()
        return {
            name: sum(map(stored_size, session.events))
            for name, session in self._memory.sessions.items()
            if not session.view.deleted
        }

    async def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""
        await self._open()
        return [record.ask for record in self._memory.asks.values() if record.settled is None]

    async def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer, of the newest ones."""
        await self._open()
        newest = list(self._memory.asks.values())[-ASKS_SEARCHED:]
        return [
            record
            for record in newest
            if record.settled is not None and not isinstance(record.settled.event, AskAnswered)
        ]

    async def find_ask(self, ask: str) -> AskRecord | None:
        """A question by its id."""
        await self._open()
        return self._memory.asks.get(ask)

    async def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had this prompt."""
        check_session(session)
        await self._open()
        known = self._memory.sessions.get(session)
        return known is not None and any(
            isinstance(stored.event, PromptQueued) and stored.event.prompt == prompt
            for stored in known.events
        )

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
        await self._open()
        events = self._memory.events
        found = (
            stored
            for stored in (events if before is None else reversed(events))
            if stored.position > after
            and (before is None or stored.position < before)
            and is_audited(stored.event)
            and session in {None, stored.session}
        )
        return page(found, limit, stored_size)

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
        read = await self.audit(after=after, before=before, limit=SEARCHED, session=session)
        return page_of_kind(read, kind, limit)

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> list[UsageRow]:
        """The usage."""
        await self._open()
        return self._memory.usage.rows(by, since, until)

    async def limits(self) -> list[LimitState]:
        """The limits of each account."""
        await self._open()
        return self._memory.usage.limits()

    async def links(self, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Link]:
        """A page of the audit log's chain."""
        limit = check_page(after, limit)
        await self._open()
        start = bisect_right(self._memory.links, after, key=lambda link: link.position)
        return self._memory.links[start : start + limit]

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
        """Delete a session."""
        check_session(session)
        conditions = conditions_of(after, fence, claim, lease)
        last = encode([SessionDeleted(by=by)])
        await self._open()
        known = self._memory.sessions.get(session)
        if known is None or known.view.deleted:
            raise NotFound("session", session)
        self._check(conditions, session, known, ())
        known.events.clear()
        known.snapshot = None
        self._memory.events = [
            stored for stored in self._memory.events if stored.session != session
        ]
        self._memory.asks = {
            id_: r for id_, r in self._memory.asks.items() if r.ask.session != session
        }
        self._memory.links = [
            replace(link, entry=None, deleted=True) if link.session == session else link
            for link in self._memory.links
        ]
        for tail in self._memory.tails:
            tail.forget()
        return self._add(session, last)[0]

    async def close(self) -> None:
        """Wake the followers, which end."""
        self._tail.close()
        if self._tail in self._memory.tails:
            self._memory.tails.remove(self._tail)

    async def _change(self, work: Callable[[SharingRecords], _Answer]) -> _Answer:
        await self._open()
        return work(self._memory.records)

    async def _look(self, question: Callable[[SharingRecords], _Answer]) -> _Answer:
        await self._open()
        return question(self._memory.records)

    async def _open(self) -> None:
        """Yield to other tasks, as an engine with a disk does."""
        await anyio.lowlevel.checkpoint()
        if self._tail.closed:
            raise JournalError("the journal is closed", code="closed")

    def _add(self, session: str, encoded: Encoded) -> list[Stored]:
        known = self._memory.sessions.get(session)
        head = 0 if known is None else known.view.head
        at = int(self._clock() * 1000)
        stored = place_events(encoded, session, head, self._memory.position, at)
        for each in stored:
            self._fold(each)
        self._memory.events += stored
        self._memory.position += len(stored)
        for tail in self._memory.tails:
            tail.publish(stored)
        return stored

    def _fold(self, stored: Stored) -> None:
        known = self._memory.sessions.get(stored.session)
        before = {} if known is None else known.view.asks
        view = fold(None if known is None else known.view, stored)
        self._memory.usage.take(None if known is None else known.view, view, stored)
        if known is None:
            known = self._memory.sessions[stored.session] = _Session(view)
        known.view = view
        known.events.append(stored)
        if is_chained(stored.event):
            self._chain(stored, deleted=view.deleted)
        if view.asks is before or view.deleted:
            return
        for ask in view.asks.keys() - before.keys():
            self._memory.asks[ask] = AskRecord(ask=view.asks[ask])
        for ask in before.keys() - view.asks.keys():
            self._memory.asks[ask] = AskRecord(ask=before[ask], settled=stored)

    def _chain(self, stored: Stored, *, deleted: bool) -> None:
        before = self._memory.links[-1].seal if self._memory.links else genesis(self._memory.epoch)
        digest = digest_of(stored)
        link = Link(
            position=stored.position,
            session=stored.session,
            digest=digest,
            seal=seal_of(before, digest),
            entry=stored,
            deleted=deleted,
        )
        self._memory.links.append(link)

    async def _page(self, session: str, after: int, limit: int) -> list[Stored]:
        return await self.read(session, after=after, limit=limit)

    async def _raw_events(self, session: str, after: int) -> RawEvents | None:
        return await self.raw_events(session, after=after)

    async def _page_of_all(self, after: int, limit: int) -> list[Stored]:
        await self._open()
        start = bisect_right(self._memory.events, after, key=lambda stored: stored.position)
        return page(islice(self._memory.events, start, None), limit, stored_size)
