"""The order of publication where others append to the same journal, too.

A journal that is alone publishes its commits as they come. With other writers there are events
between two commits of this one: they are read from the journal before the later commit is
published, so that followers see all events in the order of positions, none twice. A commit of this
journal is returned to its caller after it was published.

Owns the task that reads what others appended: when it is woken, and every `poll` seconds anyway. It
belongs to one event loop and knows neither SQL nor connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import groupby

from msgspec import Struct

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal.tail import Tail
from quarterdeck.protocol.events import SessionDeleted
from quarterdeck.protocol.stored_events import Stored

log = logging.getLogger(__name__)

PAGE = 2000
"""The most events that are read at once."""

RETRY_SECONDS = 0.2
"""The pause after a page that could not be read."""


class Commit(Struct, eq=False):
    """Events of one session that this journal stored, and what is to be done once published."""

    stored: list[Stored]
    publish: Callable[[], None]


class Arrivals:
    """Publishes commits of this journal, and events of others, in order."""

    def __init__(
        self, tail: Tail, read_all: Callable[[int, int], Awaitable[list[Stored]]], poll: float
    ) -> None:
        self._tail = tail
        self._read_all = read_all
        self._poll = poll
        self._waiting: deque[Commit] = deque()
        self._bell = asyncio.Event()
        self._ending = False
        self._task = asyncio.create_task(self._run(), name="journal arrivals")

    def commit(self, commit: Commit) -> None:
        """Publish a commit, at once if no event of another comes before it."""
        self._waiting.append(commit)
        if not self._publish_waiting():
            self._bell.set()

    def wake(self) -> None:
        """Others may have appended something."""
        self._bell.set()

    async def close(self) -> None:
        """End the task. What was stored but not published yet is returned to its callers."""
        self._ending = True
        self._bell.set()
        await self._task  # not cancelled: a read that is under way has a thread
        while self._waiting:
            self._waiting.popleft().publish()

    def _publish_waiting(self) -> bool:
        """Publish the commits that are next in order; whether none is left."""
        while self._waiting:
            commit = self._waiting[0]
            fresh = [each for each in commit.stored if each.position > self._tail.position]
            if fresh and fresh[0].position != self._tail.position + 1:
                return False
            self._waiting.popleft()
            self._publish(fresh)
            commit.publish()
        return True

    def _publish(self, events: list[Stored]) -> None:
        for _, group in groupby(events, key=lambda stored: stored.session):
            together = list(group)
            first = together[0]
            # Positions have a gap where a session was deleted; the tail has none.
            if first.position != self._tail.position + 1 or any(
                isinstance(each.event, SessionDeleted) for each in together
            ):
                self._tail.forget()
            self._tail.publish(together)

    async def _run(self) -> None:
        pause = self._poll
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), pause)
            if self._ending:
                return
            self._bell.clear()
            try:
                await self._read()
                pause = self._poll
            except JournalError as error:
                log.debug("events of other hubs could not be read: %s", error)
                pause = min(self._poll, RETRY_SECONDS)

    async def _read(self) -> None:
        """Read and publish all that others appended."""
        while True:
            before = self._tail.position
            page = await self._read_all(before, PAGE)
            # A commit of this journal may have been published meanwhile.
            fresh = [each for each in page if each.position > self._tail.position]
            for part in _without_gaps(fresh):
                self._publish(part)
            self._publish_waiting()
            if self._ending or not page or self._tail.position == before:
                return


def _without_gaps(events: list[Stored]) -> list[list[Stored]]:
    """The events in parts without a gap in positions."""
    parts: list[list[Stored]] = []
    for each in events:
        if parts and parts[-1][-1].position + 1 == each.position:
            parts[-1].append(each)
        else:
            parts.append([each])
    return parts
