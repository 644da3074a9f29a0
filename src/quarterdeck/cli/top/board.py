"""The hub as `top` shows it: all sessions and all open questions, followed until cancelled.

Owns the connection: it loads everything, applies what the hub tells, and loads everything again
after the hub was away. It folds nothing that the hub folds: sessions are the hub's views. Above is
`app`, which is called after each change; below is `quarterdeck.client`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import anyio

from quarterdeck.client import HubAddress, HubClient, HubRefused, HubStream, open_stream
from quarterdeck.domain.errors import LinkClosed, LinkError, LinkRefused
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.stream_frames import Events, Live, Views
from quarterdeck.protocol.views import AskView, EventShape, SessionShape
from quarterdeck.runtime.tasks import background_tasks

RETRY_SECONDS = 0.5
FAULTS = 500
"""From here on a status says that the hub has a problem, and not that we do."""

Where = Callable[[], Awaitable[HubAddress]]


class Board:
    """What is known of the hub."""

    def __init__(self, where: Where, changed: Callable[[], None]) -> None:
        self.where = where
        self._changed = changed
        self._hub: HubClient | None = None
        self._stale = False
        self.sessions: dict[str, SessionShape] = {}
        """Sessions that are not archived, by their ids."""
        self.asks: dict[str, AskView] = {}
        """The open questions by their ids, oldest first."""
        self.problem = "connecting"
        """Why the hub is not there; empty if it is."""

    def sorted_sessions(self) -> list[SessionShape]:
        """The sessions in the order of the list: those that wait for a person first."""
        return sorted(
            self.sessions.values(), key=lambda each: (not each.asks, each.created), reverse=False
        )

    async def run(self) -> None:
        """Follow the hub until cancelled. Raises `HubRefused` if it does not let us in."""
        while True:
            try:
                await self._follow(await self.where())
            except LinkError as error:
                self._lose(str(error))
            except HubRefused as error:
                if error.problem.status < FAULTS:
                    raise
                self._lose(str(error))
            await anyio.sleep(RETRY_SECONDS)

    def _lose(self, why: str) -> None:
        self._hub = None
        self.problem = why
        self._changed()

    async def do(self, command: AnyCommand) -> Outcome:
        """Send a command. Raises `HubRefused`, or `LinkError` if the hub is away."""
        if self._hub is None:
            raise LinkRefused("the hub is away; nothing was sent")
        return await self._hub.submit(command)

    async def _follow(self, address: HubAddress) -> None:
        client = HubClient(
            address.address, address.token, insecure=address.insecure, ca_file=address.ca_file
        )
        async with client as hub, open_stream(address) as stream:
            await stream.follow({}, all=True, live=False, views=True)
            await self._load(hub)
            self._hub, self.problem = hub, ""
            self._changed()
            async with background_tasks() as tasks:
                tasks.start_soon(_beat, stream)
                async with aclosing(stream.frames()) as frames:
                    async for frame in frames:
                        match frame:
                            case Views(sessions=shapes):
                                self._take_views(shapes)
                            case Events(events=shapes):
                                self._take_events(shapes)
                            case Live():
                                continue
                            case _:
                                continue
                        if self._stale:
                            await self._load_asks(hub)
                        self._changed()

    async def _load(self, hub: HubClient) -> None:
        found: dict[str, SessionShape] = {}
        async for shape in hub.sessions():
            found[shape.session] = shape
        self.sessions = found
        await self._load_asks(hub)

    async def _load_asks(self, hub: HubClient) -> None:
        self._stale = False
        self.asks = {card.opened.ask: card for card in await hub.asks(ended=True)}

    def _take_views(self, shapes: tuple[SessionShape, ...]) -> None:
        for shape in shapes:
            known = self.sessions.get(shape.session)
            if known is not None and known.head > shape.head:
                continue
            if shape.archived:
                self.sessions.pop(shape.session, None)
            else:
                self.sessions[shape.session] = shape

    def _take_events(self, shapes: tuple[EventShape, ...]) -> None:
        for shape in shapes:
            match shape.event:
                case ev.AskOpened(ask=ask) as opened:
                    self.asks.setdefault(
                        ask,
                        AskView(session=shape.session, seq=shape.seq, at=shape.at, opened=opened),
                    )
                case ev.AskAnswered(ask=ask) | ev.AskWithdrawn(ask=ask):
                    self.asks.pop(ask, None)
                case ev.RunEnded() | ev.RunStarting():
                    # Its questions are gone, or wait for the session to be resumed.
                    self._stale = True
                case ev.SessionDeleted():
                    self.sessions.pop(shape.session, None)
                    self._stale = True
                case _:
                    pass


async def _beat(stream: HubStream) -> None:
    with suppress(LinkClosed):  # the reader of the frames gets it too
        await stream.beat()


__all__ = ["Board", "HubRefused", "Where"]
