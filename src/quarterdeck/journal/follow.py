"""The followers of every engine: what a `Tail` has, and the journal's pages for the rest.

A follower has a cursor and no other state. It advances the cursor only when it returns events, so
a cancelled wait loses nothing. Each step starts at the cursor, so there is no gap between the
journal and the tail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Self, TypeVar

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.journal.base import Follower
from quarterdeck.journal.event_codec import check_session
from quarterdeck.journal.tail import Tail
from quarterdeck.protocol.stored_events import RawEvents, Stored

BATCH_EVENTS = 500
"""The most events of a batch: enough to fill a frame."""

ReadSession = Callable[[str, int, int], Awaitable[list[Stored]]]
"""A page of a session: its id, after which number, how many."""

ReadText = Callable[[str, int], Awaitable[RawEvents | None]]
"""Reads events of a session as text: its id, after which number."""

ReadAll = Callable[[int, int], Awaitable[list[Stored]]]
"""A page of all sessions: after which position, how many."""


def follow(
    tail: Tail,
    read: ReadSession,
    read_text: ReadText,
    read_all: ReadAll,
    cursors: Mapping[str, int] | None,
    after: int | None,
) -> Follower:
    """The follower for these cursors. Raises `UsageError`."""
    if cursors is None:
        start = tail.position if after is None else after
        if not 0 <= start <= tail.position:
            raise UsageError(f"after: {start} is no position from 0 to {tail.position}")
        return EverythingFollower(tail, read_all, start)
    if after is not None:
        raise UsageError("after: not together with cursors")
    for session, seq in cursors.items():
        check_session(session)
        if not 0 <= seq <= (head := tail.heads.get(session, 0)):
            raise UsageError(f"session {session}: {seq} is no number from 0 to {head}")
    return SessionsFollower(tail, read, read_text, cursors)


class EverythingFollower:
    """Follows all sessions, in the order of all events."""

    def __init__(self, tail: Tail, read_all: ReadAll, position: int) -> None:
        self._tail = tail
        self._read_all = read_all
        self._position = position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Stored]:
        """The next events."""
        while not self._tail.closed:
            # The journal may be ahead of the tail: events are stored before they are published.
            if self._position >= self._tail.position:
                await self._tail.wait(None)
                continue
            batch = self._tail.recent_of_all(self._position, BATCH_EVENTS)
            if not batch:
                page = self._read_all(self._position, BATCH_EVENTS)
                batch = await _page(self._tail, page, f"position {self._position}")
            self._position = batch[-1].position
            return batch
        raise StopAsyncIteration

    @property
    def behind(self) -> bool:
        """Whether events are available at once."""
        return self._position < self._tail.position

    async def next_text(self) -> list[Stored]:
        """The next events. A follower of all sessions is seldom far behind, so it reads no text."""
        return await anext(self, [])


class SessionsFollower:
    """Follows some sessions, each in order."""

    def __init__(
        self, tail: Tail, read: ReadSession, read_text: ReadText, cursors: Mapping[str, int]
    ) -> None:
        self._tail = tail
        self._read = read
        self._read_text = read_text
        self._cursors = dict(cursors)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Stored]:
        """The next events; new events of several sessions come in the order of storage."""
        behind = await self._news()
        return self._recent(behind) or await self._stored_events(behind[0])

    @property
    def behind(self) -> bool:
        """Whether events are available at once."""
        return bool(self._those_behind())

    async def next_text(self) -> list[Stored] | RawEvents:
        """The same; events that the tail has dropped come as text where possible."""
        with contextlib.suppress(StopAsyncIteration):
            behind = await self._news()
            if new := self._recent(behind):
                return new
            first = behind[0]
            raw = await _from(self._tail, self._read_text(first, self._cursors[first]))
            if raw is None:
                return await self._stored_events(first)
            self._advance(first, raw.last)
            return raw
        return []

    def _those_behind(self) -> list[str]:
        heads = self._tail.heads
        return [session for session, seq in self._cursors.items() if seq < heads.get(session, 0)]

    async def _news(self) -> list[str]:
        """Wait for events; returns the sessions that have some."""
        while not self._tail.closed:
            if behind := self._those_behind():
                return behind
            await self._tail.wait(self._cursors)
        raise StopAsyncIteration

    def _recent(self, behind: list[str]) -> list[Stored]:
        """The events in the tail; empty if it lacks the next event of the first session."""
        batch: list[Stored] = []
        for session in behind:
            room = BATCH_EVENTS - len(batch)
            new = self._tail.recent(session, self._cursors[session], room) if room else []
            if new:
                self._advance(session, new[-1].seq)
                batch += new
            elif not batch:
                return []  # it has waited longest: events of others must not delay it
        batch.sort(key=lambda stored: stored.position)
        return batch

    async def _stored_events(self, session: str) -> list[Stored]:
        after = self._cursors[session]
        page = self._read(session, after, BATCH_EVENTS)
        batch = await _page(self._tail, page, f"{after} of session {session}")
        self._advance(session, batch[-1].seq)
        return batch

    def _advance(self, session: str, seq: int) -> None:
        # To the end of the queue: otherwise a busy session would delay the others.
        del self._cursors[session]
        self._cursors[session] = seq


async def _page(tail: Tail, reading: Awaitable[list[Stored]], after: str) -> list[Stored]:
    page = await _from(tail, reading)
    if not page:
        raise JournalError(f"the journal lacks the events after {after}", code="damaged")
    return page


_Read = TypeVar("_Read")


async def _from(tail: Tail, reading: Awaitable[_Read]) -> _Read:
    try:
        return await reading
    except JournalError:
        if tail.closed:  # closed meanwhile: this is the end, not a failure
            raise StopAsyncIteration from None
        raise
