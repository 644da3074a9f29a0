"""The events of all sessions, followed over the stream until it is cancelled.

Owns reconnecting after the position that was reached, without a gap and without a double. Above is
`Hub.follow`; below is one `HubStream` at a time. A receiver that is slow slows nobody else: the hub
reads the journal for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import anyio

from quarterdeck.client.calls import HubAddress
from quarterdeck.client.feed import RETRY_SECONDS
from quarterdeck.client.stream import HubStream, open_stream
from quarterdeck.domain.errors import Conflict, LinkClosed, LinkError
from quarterdeck.protocol.stream_frames import Events, Following
from quarterdeck.protocol.views import EventShape
from quarterdeck.runtime.tasks import background_tasks


class AllEvents:
    """Follows every session from now on, or after a position."""

    def __init__(
        self,
        where: Callable[[], Awaitable[HubAddress]],
        send: Callable[[EventShape], Awaitable[None]],
        after: int | None = None,
    ) -> None:
        self._where = where
        self._send = send
        self._after = after
        self._epoch: str | None = None
        self.followed = anyio.Event()
        """Set when the hub follows: what happens from then on is not missed."""

    async def run(self) -> None:
        """Follow until cancelled. Raises `HubRefused` at any time."""
        while True:
            with suppress(LinkError):
                async with open_stream(await self._where()) as stream:
                    await self._follow(stream)
            await anyio.sleep(RETRY_SECONDS)

    async def _follow(self, stream: HubStream) -> None:
        epoch = self._epoch or stream.hello.epoch
        await stream.follow({}, epoch=epoch, all=True, after=self._after, live=False, views=False)
        async with background_tasks() as tasks:
            tasks.start_soon(_beat, stream)
            async with aclosing(stream.frames()) as frames:
                async for frame in frames:
                    match frame:
                        case Following(all=False):
                            raise Conflict("other_journal", _GONE.format(self._after))
                        case Following():
                            self._epoch = stream.hello.epoch
                            self.followed.set()
                        case Events(events=shapes):
                            await self._give(shapes)
                        case _:
                            pass

    async def _give(self, shapes: tuple[EventShape, ...]) -> None:
        for shape in shapes:
            if self._after is None or shape.position > self._after:
                await self._send(shape)
                self._after = shape.position


_GONE = "the hub has no position {}: another journal has taken the place of the one that it is of"


async def _beat(stream: HubStream) -> None:
    with suppress(LinkClosed):  # the reader of the frames gets it too
        await stream.beat()
