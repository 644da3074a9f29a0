"""A journal in memory, for tests: like the one in a file, but not durable."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import anyio.lowlevel
from msgspec import Struct, field
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError, NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.journal.base import ASKS_SEARCHED, PAGE_EVENTS, AskRecord, Follower, Snapshot
from quarterdeck.journal.chain import Link, digest_of, genesis, is_audited, is_chained, seal_of
from quarterdeck.journal.follow import follow
from quarterdeck.journal.stored import (
    Encoded,
    RawEvents,
    Stored,
    check_page,
    check_session,
    encode,
    page,
    passage,
    placed,
    stored_size,
)
from quarterdeck.journal.tail import Tail
from quarterdeck.journal.usage import LimitState, UsageBy, UsageRow
from quarterdeck.journal.usage_sums import UsageSums
from quarterdeck.journal.views import AskView, SessionView, fold
from quarterdeck.protocol.events import AskAnswered, Event, PromptQueued, SessionDeleted


class _Session(Struct):
    view: SessionView
    events: list[Stored] = field(default_factory=list)
    snapshot: Snapshot | None = None


class MemoryJournal:
    """A `Journal` that is lost with the process."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._epoch = new_id()
        self._sessions: dict[str, _Session] = {}
        self._events: list[Stored] = []
        self._asks: dict[str, AskRecord] = {}
        self._links: list[Link] = []
        self._usage = UsageSums()
        self._tail = Tail(0, {})

    @property
    def epoch(self) -> str:
        """The id of this journal."""
        return self._epoch

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self._tail.position

    async def append(
        self, session: str, events: Sequence[Event], *, snapshot: bytes | None = None
    ) -> list[Stored]:
        """Store these events."""
        check_session(session)
        encoded = encode(events)
        await self._open()
        if (known := self._sessions.get(session)) is not None and known.view.deleted:
            raise NotFound("session", session)
        stored = self._add(session, encoded)
        known = self._sessions.get(session)
        if known is not None and known.view.run is None:
            known.snapshot = None
        elif known is not None and snapshot is not None:
            known.snapshot = Snapshot(seq=known.view.head, data=snapshot)
        return stored

    async def latest_snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot."""
        check_session(session)
        await self._open()
        known = self._sessions.get(session)
        return None if known is None else known.snapshot

    async def read(self, session: str, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Stored]:
        """A page of a session's events."""
        check_session(session)
        limit = check_page(after, limit)
        await self._open()
        known = self._sessions.get(session)
        if known is None:
            return []
        start = bisect_right(known.events, after, key=lambda stored: stored.seq)
        return page(islice(known.events, start, None), limit, stored_size)

    async def passage(self, session: str, *, after: int = 0) -> RawEvents | None:
        """A session's events as text."""
        stored = await self.read(session, after=after)
        return passage(session, ((each.seq, each.position, each.at, each.json) for each in stored))

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
        return follow(self._tail, read, self._passage, read_all, cursors, after)

    async def summaries(
        self, *, after: str | None = None, limit: int = 100, archived: bool | None = False
    ) -> list[SessionView]:
        """The sessions, newest first."""
        limit = check_page(0, limit)
        await self._open()
        names = list(reversed(self._sessions))
        if after is not None:
            names = names[names.index(after) + 1 :] if after in self._sessions else []
        views = (self._sessions[name].view for name in names)
        listed = (view for view in views if not view.deleted and archived in {None, view.archived})
        return [view for view, _ in zip(listed, range(limit), strict=False)]

    async def summary(self, session: str) -> SessionView | None:
        """One session."""
        check_session(session)
        await self._open()
        known = self._sessions.get(session)
        return None if known is None or known.view.deleted else known.view

    async def sizes(self) -> dict[str, int]:
        """The bytes of each session's events."""
        await self._open()
        return {
            name: sum(map(stored_size, session.events))
            for name, session in self._sessions.items()
            if not session.view.deleted
        }

    async def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""
        await self._open()
        return [record.ask for record in self._asks.values() if record.settled is None]

    async def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer, of the newest ones."""
        await self._open()
        newest = list(self._asks.values())[-ASKS_SEARCHED:]
        return [
            record
            for record in newest
            if record.settled is not None and not isinstance(record.settled.event, AskAnswered)
        ]

    async def find_ask(self, ask: str) -> AskRecord | None:
        """A question by its id."""
        await self._open()
        return self._asks.get(ask)

    async def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had this prompt."""
        check_session(session)
        await self._open()
        known = self._sessions.get(session)
        return known is not None and any(
            isinstance(stored.event, PromptQueued) and stored.event.prompt == prompt
            for stored in known.events
        )

    async def audit(
        self, *, after: int = 0, limit: int = PAGE_EVENTS, session: str | None = None
    ) -> list[Stored]:
        """The audit log."""
        limit = check_page(after, limit)
        await self._open()
        found = (
            stored
            for stored in self._events
            if stored.position > after
            and is_audited(stored.event)
            and session in {None, stored.session}
        )
        return page(found, limit, stored_size)

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> list[UsageRow]:
        """The usage."""
        await self._open()
        return self._usage.rows(by, since, until)

    async def limits(self) -> list[LimitState]:
        """The limits of each account."""
        await self._open()
        return self._usage.limits()

    async def links(self, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Link]:
        """A page of the audit log's chain."""
        limit = check_page(after, limit)
        await self._open()
        start = bisect_right(self._links, after, key=lambda link: link.position)
        return self._links[start : start + limit]

    async def delete(self, session: str, *, by: str) -> Stored:
        """Delete a session."""
        check_session(session)
        last = encode([SessionDeleted(by=by)])
        await self._open()
        known = self._sessions.get(session)
        if known is None or known.view.deleted:
            raise NotFound("session", session)
        known.events.clear()
        known.snapshot = None
        self._events = [stored for stored in self._events if stored.session != session]
        self._asks = {id_: r for id_, r in self._asks.items() if r.ask.session != session}
        self._links = [
            replace(link, entry=None, deleted=True) if link.session == session else link
            for link in self._links
        ]
        self._tail.forget()
        return self._add(session, last)[0]

    async def close(self) -> None:
        """Wake the followers, which end."""
        self._tail.close()

    async def _open(self) -> None:
        """Yield to other tasks, as an engine with a disk does."""
        await anyio.lowlevel.checkpoint()
        if self._tail.closed:
            raise JournalError("the journal is closed", code="closed")

    def _add(self, session: str, encoded: Encoded) -> list[Stored]:
        head = self._tail.heads.get(session, 0)
        at = int(self._clock() * 1000)
        stored = placed(encoded, session, head, self._tail.position, at)
        for each in stored:
            self._fold(each)
        self._events += stored
        self._tail.publish(stored)
        return stored

    def _fold(self, stored: Stored) -> None:
        known = self._sessions.get(stored.session)
        before = {} if known is None else known.view.asks
        view = fold(None if known is None else known.view, stored)
        self._usage.take(None if known is None else known.view, view, stored)
        if known is None:
            known = self._sessions[stored.session] = _Session(view)
        known.view = view
        known.events.append(stored)
        if is_chained(stored.event):
            self._chain(stored, deleted=view.deleted)
        if view.asks is before or view.deleted:
            return
        for ask in view.asks.keys() - before.keys():
            self._asks[ask] = AskRecord(ask=view.asks[ask])
        for ask in before.keys() - view.asks.keys():
            self._asks[ask] = AskRecord(ask=before[ask], settled=stored)

    def _chain(self, stored: Stored, *, deleted: bool) -> None:
        before = self._links[-1].seal if self._links else genesis(self._epoch)
        digest = digest_of(stored)
        link = Link(
            position=stored.position,
            session=stored.session,
            digest=digest,
            seal=seal_of(before, digest),
            entry=stored,
            deleted=deleted,
        )
        self._links.append(link)

    async def _page(self, session: str, after: int, limit: int) -> list[Stored]:
        return await self.read(session, after=after, limit=limit)

    async def _passage(self, session: str, after: int) -> RawEvents | None:
        return await self.passage(session, after=after)

    async def _page_of_all(self, after: int, limit: int) -> list[Stored]:
        await self._open()
        start = bisect_right(self._events, after, key=lambda stored: stored.position)
        return page(islice(self._events, start, None), limit, stored_size)
