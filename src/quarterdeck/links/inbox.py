"""Received bytes that wait for their reader: one reader, no lost wake-up.

`SubprocessLink` and `WebSocketLink` fill and read it. It does not know pipes or lines. The source
checks `full` and stops.
"""

from __future__ import annotations

import asyncio
from collections import deque

from quarterdeck.links.base import Dropped, Resumed


class Inbox:
    """A queue of chunks with a high-water mark.

    The source observes the mark; the queue does not enforce it. Bytes that were read from the
    source are kept even above the mark, because no other copy exists.
    """

    def __init__(self, high_water: int) -> None:
        self._items: deque[bytes | Dropped | Resumed] = deque()
        self._size = 0
        self._high_water = high_water
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._released = False

    @property
    def full(self) -> bool:
        """Whether the source should wait."""
        return self._size >= self._high_water

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._items

    def put(self, item: bytes | Dropped | Resumed) -> None:
        """Add an item; an empty chunk is ignored."""
        if item == b"":
            return
        self._items.append(item)
        if isinstance(item, bytes):
            self._size += len(item)
        if self.full and not self._released:
            self._room.clear()
        self._something.set()

    def take(self) -> bytes | Dropped | Resumed | None:
        """All bytes up to the next `Dropped` or `Resumed`, or that, or None if there is nothing."""
        if not self._items:
            return None
        if not isinstance(first := self._items[0], bytes):
            self._items.popleft()
            return first
        chunks: list[bytes] = []
        while self._items and isinstance(chunk := self._items[0], bytes):
            chunks.append(chunk)
            self._items.popleft()
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self._size -= len(data)
        if not self.full:
            self._room.set()
        return data

    def wake(self) -> None:
        """Let the reader look again, though nothing came: the source has ended."""
        self._something.set()

    async def wait(self) -> None:
        """Wait until something came or `wake` was called since the last `wait`.

        A cancelled wait takes nothing.
        """
        await self._something.wait()
        self._something.clear()

    def release(self) -> None:
        """Never make sources wait again: the reader is gone."""
        self._released = True
        self._room.set()

    async def wait_for_room(self) -> None:
        """Wait until the reader has taken enough for the source to continue."""
        await self._room.wait()
