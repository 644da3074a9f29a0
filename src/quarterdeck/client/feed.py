"""One session, followed over the stream until it is cancelled.

Owns reconnecting when the hub was away, without a gap and without a double, and sending commands
again after that. Above are `SessionClient` and the commands `attach` and `log`; below is one
`HubStream` at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Protocol

import anyio

from quarterdeck.client.calls import HubAddress
from quarterdeck.client.stream import Followed, HubStream, open_stream
from quarterdeck.domain.errors import LinkClosed, LinkError, LinkRefused, NotFound
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.stream_frames import Events, Following, Live, Views
from quarterdeck.protocol.views import EventShape, SessionShape
from quarterdeck.runtime.tasks import background_tasks

RETRY_SECONDS = 0.5
SENDINGS = 5
"""How often a command is sent when the connection is lost each time before its answer."""


class Listener(Protocol):
    """The receiver of what happens to the session. Its methods are called in the loop."""

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """These happened, in this order."""

    def view(self, shape: SessionShape) -> None:
        """The session has changed. It is not called unless views were asked for."""

    def live(self, frame: Live) -> None:
        """Text is being written."""

    def connection_lost(self, reason: str) -> None:
        """The hub is away."""

    def connection_made(self) -> None:
        """It is there, for the first time or again."""


class Feed:
    """Follows a session after the number `after`.

    `where` is asked before each connection: a hub that restarts may have another address. With
    `patient`, the hub may be away at the first attempt as well.
    """

    def __init__(
        self,
        where: Callable[[], Awaitable[HubAddress]],
        session: str,
        after: int,
        listener: Listener,
        *,
        views: bool = False,
        patient: bool = False,
    ) -> None:
        self._patient = patient
        self._where = where
        self._session = session
        self._views = views
        self._listener = listener
        self._epoch: str | None = None
        self._stream: HubStream | None = None
        self._there = anyio.Event()
        self.seen = after
        """The number of the last event that the listener got."""

    async def run(self) -> None:
        """Follow until cancelled. Raises what a first attempt raises, or a refusal at any time."""
        while True:
            try:
                async with open_stream(await self._where()) as stream:
                    await self._follow(stream)
            except LinkError as error:
                if self._epoch is None and not self._patient:
                    raise
                if self._there.is_set() or isinstance(error, LinkClosed):
                    self._listener.connection_lost(str(error))
                self._stream, self._there = None, anyio.Event()
            await anyio.sleep(RETRY_SECONDS)

    async def do(self, command: AnyCommand) -> Outcome:
        """Send a command. It must be idempotent: it is sent again when the hub was away."""
        for _ in range(SENDINGS):
            await self._there.wait()
            stream = self._stream
            if stream is None:
                continue
            try:
                return await stream.do(command)
            except LinkClosed:
                await anyio.sleep(RETRY_SECONDS)
        raise LinkRefused("the hub went away each time before it answered")

    async def _follow(self, stream: HubStream) -> None:
        await self._begin(stream, self._epoch or stream.hello.epoch)
        async with background_tasks() as tasks:
            tasks.start_soon(_beat, stream)
            async with aclosing(stream.frames()) as frames:
                async for frame in frames:
                    await self._take(stream, frame)

    async def _begin(self, stream: HubStream, epoch: str | None) -> None:
        await stream.follow({self._session: self.seen}, epoch=epoch, views=self._views)

    async def _take(self, stream: HubStream, frame: Followed) -> None:
        match frame:
            case Following(sessions=places):
                place = places.get(self._session)
                if place is None or place.reason == "unknown":
                    raise NotFound("session", self._session)
                if place.status == "gap":
                    # Another journal has taken the old one's place: its numbers begin anew.
                    self.seen = 0
                    await self._begin(stream, None)
                    return
                self._epoch, self._stream = stream.hello.epoch, stream
                self._there.set()
                self._listener.connection_made()
            case Events(events=shapes):
                new = tuple(shape for shape in shapes if shape.seq > self.seen)
                if new:
                    self.seen = new[-1].seq
                    self._listener.events(new)
            case Views(sessions=shapes):
                for shape in shapes:
                    self._listener.view(shape)
            case Live():
                self._listener.live(frame)


async def _beat(stream: HubStream) -> None:
    with suppress(LinkClosed):  # the reader of the frames gets it too
        await stream.beat()
