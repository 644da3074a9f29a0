"""The followers of every engine: what a `Tail` has, and the journal's pages for the rest.

A follower remembers how far it is, and nothing else. It advances only at the moment it gives
events away, so that a cancelled wait loses nothing; and each of its steps starts from how far it
is, so that there is no seam between the journal and the tail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.journal.base import Follower
from quarterdeck.journal.stored import Stored, check_session
from quarterdeck.journal.tail import Tail

BATCH_EVENTS = 500
"""How many events a follower gives at once: enough to fill a frame, and soon digested."""

ReadSession = Callable[[str, int, int], Awaitable[list[Stored]]]
"""A page of a session: its id, after which number, how many."""

ReadAll = Callable[[int, int], Awaitable[list[Stored]]]
"""A page of all sessions: after which position, how many."""


def follow(
    tail: Tail,
    read: ReadSession,
    read_all: ReadAll,
    cursors: Mapping[str, int] | None,
    after: int | None,
) -> Follower:
    """The follower for these wishes. Raises `UsageError`."""
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
    return SessionsFollower(tail, read, cursors)


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
            # The journal may be ahead of the tail: what it has is stored, though not yet told.
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


class SessionsFollower:
    """Follows some sessions, each in its order."""

    def __init__(self, tail: Tail, read: ReadSession, cursors: Mapping[str, int]) -> None:
        self._tail = tail
        self._read = read
        self._cursors = dict(cursors)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Stored]:
        """The next events; new ones of several sessions in the order in which they came."""
        while not self._tail.closed:
            behind = [s for s, seq in self._cursors.items() if seq < self._tail.heads.get(s, 0)]
            if not behind:
                await self._tail.wait(self._cursors)
                continue
            first = behind[0]  # it has waited longest: news of others must not keep it waiting
            if self._tail.recent(first, self._cursors[first], 1):
                return self._recent(behind)
            page = self._read(first, self._cursors[first], BATCH_EVENTS)
            batch = await _page(self._tail, page, f"{self._cursors[first]} of session {first}")
            self._advance(first, batch)
            return batch
        raise StopAsyncIteration

    def _recent(self, behind: list[str]) -> list[Stored]:
        batch: list[Stored] = []
        for session in behind:
            room = BATCH_EVENTS - len(batch)
            if room and (new := self._tail.recent(session, self._cursors[session], room)):
                self._advance(session, new)
                batch += new
        batch.sort(key=lambda stored: stored.position)
        return batch

    def _advance(self, session: str, batch: list[Stored]) -> None:
        # To the end of the row: else a busy session would keep the others waiting.
        del self._cursors[session]
        self._cursors[session] = batch[-1].seq


async def _page(tail: Tail, reading: Awaitable[list[Stored]], after: str) -> list[Stored]:
    try:
        page = await reading
    except JournalError:
        if tail.closed:  # under our hands: that is an end, and no failure
            raise StopAsyncIteration from None
        raise
    if not page:
        raise JournalError(f"the journal lacks the events after {after}", code="damaged")
    return page
