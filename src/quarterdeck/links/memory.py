"""A link without a process: both ends belong to one program.

Two bounded queues, for tests and for programs that speak the protocol themselves. It behaves like
the other links, reconnects included, and lets the far end control what is otherwise chance: where
the bytes are split, and when the connection is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.base import Dropped, Resumed, check_whole_lines

LIMIT = 1024 * 1024


def memory_pair(*, limit: int = LIMIT, resumable: bool = True) -> tuple[MemoryLink, MemoryPeer]:
    """A link and its far end. `limit` is the number of bytes that may wait unread, each way."""
    wire = _Wire(limit)
    return MemoryLink(wire, resumable=resumable), MemoryPeer(wire)


class MemoryLink:
    """Our end: a `Link` like any other."""

    def __init__(self, wire: _Wire, *, resumable: bool) -> None:
        self._wire = wire
        self._resumable = resumable
        self._send_order = asyncio.Lock()

    @property
    def resumable(self) -> bool:
        """Whether the far end may drop the connection and resume it."""
        return self._resumable

    async def receive(self) -> bytes | Dropped | Resumed:
        """The next chunk, exactly as the far end cut it."""
        wire = self._wire
        await wire.until(lambda: bool(wire.from_peer.items) or wire.closed is not None)
        if not wire.from_peer.items:
            raise wire.error()
        item = wire.from_peer.take()
        wire.notify()
        return item

    async def send(self, data: bytes) -> None:
        """Send whole lines to the far end; waits while too many bytes are unread there."""
        check_whole_lines(data)
        if not data:
            return
        wire = self._wire
        async with self._send_order:
            await wire.until(lambda: not wire.to_peer.full or wire.no_more_input)
            if wire.closed is not None:
                raise wire.error()
            if wire.input_ended:
                raise LinkClosed("Nothing more can be sent: the input has ended.")
            wire.to_peer.put(data)
            wire.notify()

    async def end_input(self) -> None:
        """End the far end's `receive` after it has taken everything that was sent."""
        self._wire.input_ended = True
        self._wire.notify()

    async def close(self) -> None:
        """End both directions; bytes that the far end sent before can still be received."""
        self._wire.close(LinkClosed("The link was closed."))


class MemoryPeer:
    """The far end, in the role of the CLI."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    async def send(self, data: bytes, *, chunk: int | None = None) -> None:
        """Let the link receive `data`, cut in pieces of `chunk` bytes; waits for room.

        While the connection is dropped the bytes are lost, as they are with the CLI.
        """
        wire = self._wire
        size = chunk or max(len(data), 1)
        for start in range(0, len(data), size):
            await wire.until(lambda: not wire.from_peer.full or wire.closed is not None)
            if wire.closed is not None:
                raise wire.error()
            if not wire.dropped:
                wire.from_peer.put(data[start : start + size])
                wire.notify()

    async def receive(self) -> bytes:
        """All that the link has sent since the last call; waits while there is nothing.

        Raises `LinkClosed` when the link's input was ended, or the link closed, and all is taken.
        """
        wire = self._wire
        await wire.until(lambda: wire.has_input or wire.no_more_input)
        if wire.has_input:
            parts: list[bytes] = []
            while wire.to_peer.items:
                part = wire.to_peer.take()
                assert isinstance(part, bytes)
                parts.append(part)
            wire.notify()
            return b"".join(parts)
        if wire.closed is not None:
            raise wire.error()
        raise LinkClosed("The input has ended.")

    def drop(self, *, lose: bool = False) -> None:
        """Lose the connection: the link receives `Dropped`. Lines that it sends now wait for
        `resume`.

        With `lose`, unread bytes in both directions are lost too.
        """
        wire = self._wire
        if lose:
            wire.to_peer.lose()
            wire.from_peer.lose()
        if not wire.dropped and wire.closed is None:
            wire.dropped = True
            wire.from_peer.put(Dropped("The far end has dropped the connection."))
        wire.notify()

    def resume(self, last_request_id: str | None = None) -> None:
        """Restore the connection: the link receives `Resumed`, and then the next bytes.

        A connection that was not dropped is dropped first, as with a CLI that reconnects at once.
        """
        self.drop()
        self._wire.dropped = False
        self._wire.from_peer.put(Resumed(last_request_id))
        self._wire.notify()

    def close(self, reason: str = "The far end has left.", *, exit_code: int | None = 0) -> None:
        """End the link as a CLI that exits; bytes that were sent before can still be received."""
        self._wire.close(LinkClosed(reason, exit_code=exit_code))


class _Queue:
    """Items in one direction, and how many bytes they are."""

    def __init__(self, limit: int) -> None:
        self.items: deque[bytes | Dropped | Resumed] = deque()
        self._limit = limit
        self._size = 0

    @property
    def full(self) -> bool:
        return self._size >= self._limit

    def put(self, item: bytes | Dropped | Resumed) -> None:
        self.items.append(item)
        self._size += len(item) if isinstance(item, bytes) else 0

    def take(self) -> bytes | Dropped | Resumed:
        item = self.items.popleft()
        self._size -= len(item) if isinstance(item, bytes) else 0
        return item

    def lose(self) -> None:
        """Drop the bytes; keep the reports about the connection."""
        self.items = deque(item for item in self.items if not isinstance(item, bytes))
        self._size = 0


class _Wire:
    """What both ends share. Every wait looks again after every change: simple, and never late."""

    def __init__(self, limit: int) -> None:
        self.to_peer = _Queue(limit)
        self.from_peer = _Queue(limit)
        self.dropped = False
        self.input_ended = False
        self.closed: LinkClosed | None = None
        self._waiters: set[asyncio.Event] = set()

    @property
    def no_more_input(self) -> bool:
        return self.input_ended or self.closed is not None

    @property
    def has_input(self) -> bool:
        """Whether the far end can receive something; nothing arrives while the connection is
        lost.
        """
        return bool(self.to_peer.items) and not self.dropped

    def notify(self) -> None:
        for waiter in self._waiters:
            waiter.set()

    def close(self, closed: LinkClosed) -> None:
        self.closed = self.closed or closed
        self.notify()

    def error(self) -> LinkClosed:
        assert self.closed is not None
        return self.closed.copy()

    async def until(self, holds: Callable[[], bool]) -> None:
        if holds():
            await asyncio.sleep(0)  # let others run, also when there is always something to do
        while not holds():
            waiter = asyncio.Event()
            self._waiters.add(waiter)
            try:
                await waiter.wait()
            finally:
                self._waiters.discard(waiter)
