"""Queues between the one reader of a link and the iterators over messages.

Balances three goals: no loss, bounded memory, and a slow iterator that never blocks the agent for
good. A full inbox first slows the link down (`crowded`, `ease`). If its iterator does not move at
all, token deltas are dropped, because complete messages replace them. Nothing else is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self, cast

import anyio

from quarterdeck.wire.base import Message
from quarterdeck.wire.messages import FromCli, StreamEvent

CROWDED = 20_000
"""Messages in an inbox above which the link is slowed down. A busy turn has a few thousand."""
EASED = 5_000
"""The number below which the link runs at full speed again."""


class Inbox:
    """Messages for one iterator."""

    def __init__(self) -> None:
        self.dropped_deltas = 0
        self._items: deque[FromCli] = deque()
        self._held = False
        self._closed = False
        self._error: Exception | None = None
        self._arrived: anyio.Event | None = None
        self._eased: anyio.Event | None = None
        self._read = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def crowded(self) -> bool:
        """Whether too many messages wait for an iterator that has begun to read."""
        return len(self._items) > CROWDED and self._read > 0 and not self._closed

    def put(self, messages: Sequence[Message]) -> None:
        """Add messages, in order."""
        if self._closed:
            return
        # `codec.from_cli` makes no other messages; a test tries every type.
        self._items.extend(cast("Sequence[FromCli]", messages))
        self._notice()
        if len(self._items) > 2 * CROWDED:
            self._drop_deltas()

    def hold(self) -> None:
        """Hold messages back until it is known whether they belong to this iterator."""
        self._held = True

    def release(self) -> None:
        """They belong to it: release held messages, and pass on what follows."""
        if self._held:
            self._held = False
            self._notice()

    def discard(self) -> None:
        """They do not belong to it: drop held messages, and hold what follows."""
        if self._held:
            self._items.clear()

    def end(self, error: Exception | None = None) -> None:
        """No more messages follow. Messages in the queue can still be read; then `error` is
        raised.
        """
        if self._closed:
            return
        self._closed = True
        self._held = False
        self._error = error
        self._notice()
        if self._eased is not None:
            self._eased.set()

    async def ease(self, seconds: float) -> None:
        """Wait until the iterator has caught up, as long as it reads at all."""
        while self.crowded:
            before = self._read
            self._eased = anyio.Event()
            with anyio.move_on_after(seconds):
                await self._eased.wait()
            self._eased = None
            if self._read == before:
                # It does not read. It may be waiting for something that only we can bring.
                self._drop_deltas()
                return

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FromCli:
        # Speed matters here: one call for each message, and mostly there is one.
        while not self._items or self._held:
            if self._closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            await self._wait()
        self._read += 1
        message = self._items.popleft()
        if self._eased is not None and len(self._items) <= EASED:
            self._eased.set()
        return message

    async def _wait(self) -> None:
        """Wait until something has changed."""
        self._arrived = anyio.Event()
        await self._arrived.wait()

    def _notice(self) -> None:
        if self._arrived is not None:
            self._arrived.set()
            self._arrived = None

    def _drop_deltas(self) -> None:
        kept = [item for item in self._items if not isinstance(item, StreamEvent)]
        self.dropped_deltas += len(self._items) - len(kept)
        self._items = deque(kept)


class Messages(Inbox):
    """Every message of a CLI from the creation of this object on. `Agent.messages` makes it.

    It fills as long as it is referenced. As an async context manager it drops unread messages at
    the end of the block.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.end()
        self._items.clear()
