"""Events as text: each in its envelope, several to a page, a frame, or a server-sent event.

An event's stored bytes are put into their envelope as they are; they are never decoded for it.
Above are the routes and the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import anyio.lowlevel
import msgspec

from quarterdeck.fronts.http.echoes import without_pictures
from quarterdeck.fronts.http.masking import masked_json
from quarterdeck.journal import stored as journal
from quarterdeck.journal.base import RawEvents, Stored
from quarterdeck.journal.stored import stored_size
from quarterdeck.runtime.off_loop import large_turn, off_loop

FRAME_BYTES = 256 * 1024
"""A frame is closed when it has this much. A single event may be larger, and is a frame alone."""

AT_ONCE = 100
"""Events of a page that are written without a pause."""

_PAGE = b'{"epoch":%b,"events":[%b],"next":%b}'

Events = Sequence[Stored] | RawEvents
"""Events on their way to a client. In a passage there is nothing to mask."""


def envelope(stored: Stored) -> bytes:
    """An event in its place, as JSON: what `EventShape` describes."""
    return journal.envelope(
        stored.session, stored.seq, stored.position, stored.at, masked_json(stored)
    )


async def page(
    epoch: str, events: Sequence[Stored], following: int | None, *, echoes: bool = True
) -> bytes:
    """A page of events, as JSON: what `EventPage` describes. Others may go on meanwhile.

    Without `echoes`, a picture of a prompt is not repeated where the CLI repeats the prompt.
    """
    write = _envelopes if echoes else _lean_envelopes
    made: list[bytes] = []
    for start in range(0, len(events), AT_ONCE):
        some = events[start : start + AT_ONCE]
        made += await off_loop(sum(map(stored_size, some)), write, some)
        await anyio.lowlevel.checkpoint()
    head, tail = msgspec.json.encode(epoch), msgspec.json.encode(following)
    size = sum(map(len, made))
    data = await off_loop(size, lambda: _PAGE % (head, b",".join(made), tail))
    await large_turn(size)
    return data


def _envelopes(events: Sequence[Stored]) -> list[bytes]:
    return list(map(envelope, events))


def _lean_envelopes(events: Sequence[Stored]) -> list[bytes]:
    return [
        journal.envelope(
            one.session, one.seq, one.position, one.at, without_pictures(masked_json(one))
        )
        for one in events
    ]


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


class Frames:
    """Frames of events, made once for all clients that want the same ones at the same time."""

    KEPT = 16

    def __init__(self, epoch: str) -> None:
        self._head = f'{{"t":"events","epoch":{msgspec.json.encode(epoch).decode()},"events":'
        self._made: dict[tuple[str, int, int], str] = {}

    async def frame(self, batch: Events) -> str:
        """The frame for these events."""
        if isinstance(batch, RawEvents):  # read by one client, for itself
            return f"{self._head}{batch.text}}}"
        key = _key(batch)
        if key is not None and (made := self._made.get(key)) is not None:
            return made
        text = await off_loop(sum(map(stored_size, batch)), self._text, batch)
        if key is not None:
            while len(self._made) >= self.KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[key] = text
        return text

    def _text(self, batch: Sequence[Stored]) -> str:
        return f"{self._head}[{b','.join(map(envelope, batch)).decode()}]}}"


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
