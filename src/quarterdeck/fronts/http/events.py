"""Events as text: each in its envelope, several to a page, a frame, or a server-sent event.

An event's stored bytes are put into their envelope as they are; they are never decoded for it.
Above are the routes and the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import anyio.lowlevel
import msgspec

from quarterdeck.fronts.http.compression import Packer
from quarterdeck.fronts.http.masks import masked_json
from quarterdeck.fronts.http.pictures import raw_events_with_paths, with_paths
from quarterdeck.protocol import stored_events
from quarterdeck.protocol.stored_events import RawEvents, Stored, stored_size
from quarterdeck.runtime.off_loop import large_turn, off_loop

FRAME_BYTES = 256 * 1024
"""A frame is closed when it has this much. A single event may be larger, and is a frame alone."""

WORTH_PACKING = 4 * 1024
"""Letters of a frame from which it is compressed, for clients that take it so."""

AT_ONCE = 100
"""Events of a page that are written without a pause."""

_PAGE = b'{"epoch":%b,"events":[%b],"next":%b}'
_LATEST = b'{"epoch":%b,"session":%b,"events":[%b]}'

Events = Sequence[Stored] | RawEvents
"""Events on their way to a client. In a `RawEvents` there is nothing to mask."""


def envelope(stored: Stored) -> bytes:
    """An event in its place, as JSON: what `EventShape` describes."""
    return stored_events.envelope(
        stored.session, stored.seq, stored.position, stored.at, masked_json(stored)
    )


async def page(
    epoch: str, events: Sequence[Stored], following: int | None, *, pictures: bool = True
) -> bytes:
    """A page of events, as JSON: what `EventPage` describes. Others may go on meanwhile.

    Without `pictures`, each is a path where its data was.
    """
    made = await _encode_events(events, pictures=pictures)
    head, tail = msgspec.json.encode(epoch), msgspec.json.encode(following)
    size = sum(map(len, made))
    data = await off_loop(size, lambda: _PAGE % (head, b",".join(made), tail))
    await large_turn(size)
    return data


async def latest(epoch: str, session: bytes, events: Sequence[Stored]) -> bytes:
    """A session in JSON with its last events: what `LatestEvents` describes."""
    made = await _encode_events(events, pictures=False)
    head = msgspec.json.encode(epoch)
    size = sum(map(len, made))
    data = await off_loop(size, lambda: _LATEST % (head, session, b",".join(made)))
    await large_turn(size)
    return data


async def _encode_events(events: Sequence[Stored], *, pictures: bool) -> list[bytes]:
    write = _envelopes if pictures else _lean_envelopes
    made: list[bytes] = []
    for start in range(0, len(events), AT_ONCE):
        some = events[start : start + AT_ONCE]
        made += await off_loop(sum(map(stored_size, some)), write, some)
        await anyio.lowlevel.checkpoint()
    return made


def _envelopes(events: Sequence[Stored]) -> list[bytes]:
    return list(map(envelope, events))


def lean_envelope(stored: Stored) -> bytes:
    """The same without the data of pictures."""
    data = with_paths(stored.session, stored.seq, masked_json(stored))
    return stored_events.envelope(stored.session, stored.seq, stored.position, stored.at, data)


def _lean_envelopes(events: Sequence[Stored]) -> list[bytes]:
    return list(map(lean_envelope, events))


def batches(events: Events) -> Iterator[Events]:
    """Events in their order, as many to a batch as fit a frame."""
    if isinstance(events, RawEvents):
        yield events
        return
    batch: list[Stored] = []
    size = 0
    for stored in events:
        if batch and size + len(stored.json) > FRAME_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(stored)
        size += len(stored.json)
    if batch:
        yield batch


class EventFrame:
    """A frame of events: its text, and the same compressed, once a client wanted that."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.packed: bytes | None = None


class Frames:
    """Frames of events, made once for all clients that want the same ones at the same time."""

    KEPT = 16

    def __init__(self, epoch: str) -> None:
        self._head = f'{{"t":"events","epoch":{msgspec.json.encode(epoch).decode()},"events":'
        self._made: dict[tuple[bool, str, int, int], EventFrame] = {}
        self._packer = Packer()

    async def frame(self, batch: Events, *, pictures: bool = True) -> EventFrame:
        """The frame for these events. Without `pictures`, each is a path where its data was."""
        if isinstance(batch, RawEvents):  # read by one client, for itself
            text = batch.text
            if not pictures:
                text = await off_loop(len(text), raw_events_with_paths, text)
            return EventFrame(f"{self._head}{text}}}")
        name = _key(batch)
        key = None if name is None else (pictures, *name)
        if key is not None and (made := self._made.get(key)) is not None:
            return made
        write = envelope if pictures else lean_envelope
        size = sum(map(stored_size, batch))
        made = EventFrame(await off_loop(size, self._text, batch, write))
        if key is not None:
            while len(self._made) >= self.KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[key] = made
        return made

    async def compress(self, frame: EventFrame) -> bytes | None:
        """The frame compressed; None if it is small, or enough others are being compressed."""
        if frame.packed is None and len(frame.text) >= WORTH_PACKING:
            data = await off_loop(len(frame.text), frame.text.encode)
            frame.packed = await self._packer.pack(data)
        return frame.packed

    def _text(self, batch: Sequence[Stored], write: Callable[[Stored], bytes]) -> str:
        return f"{self._head}[{b','.join(map(write, batch)).decode()}]}}"


def _key(batch: Sequence[Stored]) -> tuple[str, int, int] | None:
    """A name for a choice of events that can be made in one way only; None for any other.

    That is all events between two positions, or all of one session between two numbers.
    """
    first, last = batch[0], batch[-1]
    if last.position - first.position + 1 == len(batch):
        return "", first.position, last.position
    if last.seq - first.seq + 1 == len(batch) and all(
        stored.session == first.session for stored in batch
    ):
        return first.session, first.seq, last.seq
    return None
