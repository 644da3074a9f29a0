"""The newest events in memory, shared by all followers, and the signal that wakes them.

Every engine owns one `Tail` and publishes what it has stored. The tail is bounded: a follower that
is too far behind reads the journal. So no follower has a queue of its own, and none can slow an
append. A tail belongs to one event loop, and knows neither files nor threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from quarterdeck.protocol.stored_events import Stored, stored_size

MOST_EVENTS = 10_000
MOST_BYTES = 16 * 1024 * 1024
"""Both limits hold some seconds of a busy hub, so a reader that keeps up never reads the disk."""


class Tail:
    """The newest events."""

    def __init__(
        self,
        position: int,
        heads: dict[str, int],
        *,
        most_events: int = MOST_EVENTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.position = position
        self.heads = heads
        self.closed = False
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._events: deque[Stored] = deque()
        self._of_session: dict[str, deque[Stored]] = {}
        self._bytes = 0
        self._everything: set[asyncio.Event] = set()
        self._listening: dict[str, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        return len(self._events)

    def publish(self, stored: Sequence[Stored]) -> None:
        """Publish events of one session that are stored."""
        if not stored:
            return
        last = stored[-1]
        self._events += stored
        self._of_session.setdefault(last.session, deque()).extend(stored)
        self._bytes += sum(map(stored_size, stored))
        self.heads[last.session] = last.seq
        self.position = last.position
        self._shrink()
        self._ring((last.session,))

    def forget(self) -> None:
        """Drop everything: deleted events must not be delivered any more."""
        self._events.clear()
        self._of_session.clear()
        self._bytes = 0

    def recent(self, session: str, after: int, limit: int) -> list[Stored]:
        """The events after the number `after` in a session; empty if some are not in the tail."""
        return _events_after(
            self._of_session.get(session, ()), limit, lambda first: first.seq, after
        )

    def recent_of_all(self, after: int, limit: int) -> list[Stored]:
        """The events after the position `after`; empty if some are not in the tail."""
        return _events_after(self._events, limit, lambda first: first.position, after)

    async def wait(self, sessions: Collection[str] | None) -> None:
        """Wait until an event of these sessions (None: of any) is published, or for the end.

        A caller that found nothing may call this at once: no event is missed in between.
        """
        bell = asyncio.Event()
        places = self._places(sessions)
        for place in places:
            place.add(bell)
        try:
            await bell.wait()
        finally:
            for place in places:
                place.discard(bell)
            for session in sessions or ():
                if not self._listening.get(session, True):
                    del self._listening[session]

    def close(self) -> None:
        """Mark the end and wake all followers."""
        self.closed = True
        self._ring(self._listening)

    def _places(self, sessions: Collection[str] | None) -> list[set[asyncio.Event]]:
        if sessions is None:
            return [self._everything]
        return [self._listening.setdefault(session, set()) for session in sessions]

    def _ring(self, sessions: Iterable[str]) -> None:
        for bell in self._everything:
            bell.set()
        for session in sessions:
            for bell in self._listening.get(session, ()):
                bell.set()

    def _shrink(self) -> None:
        while len(self._events) > self._most_events or self._bytes > self._most_bytes:
            oldest = self._events.popleft()
            self._bytes -= len(oldest.json)
            of_session = self._of_session[oldest.session]
            of_session.popleft()
            if not of_session:
                del self._of_session[oldest.session]


def _events_after(
    events: Sequence[Stored], limit: int, number: Callable[[Stored], int], after: int
) -> list[Stored]:
    """Numbers have no gaps here, so a number is an index."""
    if not events or (start := after + 1 - number(events[0])) < 0:
        return []
    return [events[at] for at in range(start, min(start + limit, len(events)))]
