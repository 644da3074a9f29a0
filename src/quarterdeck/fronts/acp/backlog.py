"""What came from the hub and was not told to the editor yet: in order, and bounded.

An editor may read slowly, or not at all. Durable events that do not fit are dropped here and read
from the hub again when the editor has caught up; live text that does not fit is superseded anyway.
"""

from __future__ import annotations

from collections import deque

import anyio

from quarterdeck.protocol import events as ev
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import EventShape, SessionShape

MOST_ITEMS = 1000
MOST_BYTES = 64 * 1024 * 1024

Item = EventShape | Live | SessionShape | str
"""An event, text that is being generated, a view, or a notice of our own."""


class Backlog:
    """The items of one session."""

    def __init__(self, after: int) -> None:
        self.delivered = after
        """The number of the last event that was taken out."""
        self._came = after
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._bell = anyio.Event()
        self.missed = False
        """Events were dropped: those after `delivered` are to be read from the hub."""

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """Events came, each once."""
        if shapes[0].seq <= self._came:
            # Another journal has taken the place of the old one: its numbers begin anew.
            self._items.clear()
            self._bytes, self.missed, self.delivered = 0, False, shapes[0].seq - 1
        self._came = shapes[-1].seq
        for shape in shapes:
            self._put(shape, _size(shape))

    def live(self, frame: Live) -> None:
        """Text that is being generated came."""
        if not self.missed:
            self._put(frame, sum(len(delta.text) for delta in frame.deltas))

    def view(self, shape: SessionShape) -> None:
        """A view came; only the newest counts."""
        if self._items and isinstance(self._items[-1], SessionShape):
            self._items.pop()
        self._put(shape, 0)

    def note(self, text: str) -> None:
        """Something happened that is no event of the hub."""
        self._put(text, len(text))

    async def next(self) -> Item | None:
        """The next item; None if events were missed, and are to be read from the hub."""
        while True:
            if self.missed:
                return None
            if not self._items:
                self._bell = anyio.Event()
                await self._bell.wait()
                continue
            item = self._items.popleft()
            self._bytes -= _size(item)
            if not isinstance(item, EventShape):
                return item
            if item.seq > self.delivered:  # it may have been read from the hub
                self.delivered = item.seq
                return item

    def begin_reading(self) -> None:
        """The reader begins to read from the hub; what comes meanwhile is kept again."""
        self.missed = False

    def _put(self, item: Item, size: int) -> None:
        if isinstance(item, EventShape) and self.missed:
            return
        self._items.append(item)
        self._bytes += size
        if len(self._items) > MOST_ITEMS or self._bytes > MOST_BYTES:
            self._items.clear()
            self._bytes, self.missed = 0, True
        self._bell.set()


def _size(item: Item) -> int:
    match item:
        case EventShape(event=ev.Said(line=line) | ev.Sent(line=line) | ev.Recalled(line=line)):
            return len(memoryview(line))
        case Live(deltas=deltas):
            return sum(len(delta.text) for delta in deltas)
        case str():
            return len(item)
        case _:
            return 0
