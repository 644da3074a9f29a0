"""A session's events as server-sent events, for clients as simple as `curl`.

Each event's id is `EPOCH:SEQ`, so that a `Last-Event-ID` of another journal is noticed. Above is
the route; below is the hub's follower, which reads the journal at the client's own speed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from litestar.response import Stream

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.events import envelope
from quarterdeck.fronts.http.routes.handlers import Asking
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.runtime.off_loop import large_turn

BEAT_SECONDS = 15.0
"""A comment is sent after this time without an event: proxies close silent connections."""

MEDIA_TYPE = "text/event-stream"


class Start(Value):
    """Where a stream begins; with a gap, where it would have to begin again."""

    after: int
    gap: str | None = None


def wants_event_stream(request: Asking) -> bool:
    """Whether the client asked for server-sent events."""
    return MEDIA_TYPE in request.headers.get("accept", "").lower()


def last_event_id(request: Asking, epoch: str, head: int, after: int) -> Start:
    """Where to resume. Raises `UsageError` for an id that the hub did not send."""
    given = request.headers.get("last-event-id", "")
    if given:
        of, _, number = given.rpartition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            raise UsageError("Last-Event-ID: must be EPOCH:NUMBER")
        after = int(number)
        if of != epoch:
            return Start(after=0, gap="epoch")
    return Start(after=0, gap="ahead") if after > head else Start(after=after)


def event_stream(hub: HubApi, session: str, start: Start) -> Stream:
    """The answer: all events after the start, then each as it happens."""
    # A proxy that buffers would hold events back.
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return Stream(_lines(hub, session, start), media_type=MEDIA_TYPE, headers=headers)


async def _lines(hub: HubApi, session: str, start: Start) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    if start.gap is not None:
        yield b'event: gap\ndata: {"reason":"%b"}\n\n' % start.gap.encode()
        return
    epoch = hub.epoch.encode()
    follower = hub.follow({session: start.after})
    while True:
        batch: list[Stored] | None = None
        with anyio.move_on_after(BEAT_SECONDS) as beat:
            batch = await anext(follower, [])
        if beat.cancelled_caught or batch is None:
            yield b": beat\n\n"
            continue
        if not batch:
            return  # the journal is closed: the client comes back to the next hub
        for stored in batch:
            await large_turn(len(stored.json))
            yield b"id: %b:%d\ndata: %b\n\n" % (epoch, stored.seq, envelope(stored))
