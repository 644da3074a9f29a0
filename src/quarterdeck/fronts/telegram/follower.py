"""The hub's stream, followed by the front: our sessions from where we were, others if wanted.

Owns reconnecting without a gap and without a double. Events, views and live text go to the
`Reporter`. Sessions of others are followed only where a place wants all: they may be many, and
each of their lines would be read here too. The bot's own token is enough for it.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import aclosing, suppress
from sys import maxsize

import anyio.to_thread

from quarterdeck.client.calls import HubRefused
from quarterdeck.client.stream import Followed as Frame
from quarterdeck.client.stream import HubStream, open_stream
from quarterdeck.domain.errors import LinkClosed, LinkError, QuarterdeckError
from quarterdeck.fronts.telegram.messenger import Messenger
from quarterdeck.fronts.telegram.people import People
from quarterdeck.fronts.telegram.preload import load_markdown
from quarterdeck.fronts.telegram.reporter import Reporter
from quarterdeck.protocol.stream_frames import Events, Following, Live, Views
from quarterdeck.protocol.views import EventShape
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)

RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SESSIONS = 500
"""Sessions that are followed by name at the start."""
MOST_SESSIONS = 950
"""The stream takes a thousand by name. Beyond this, all are followed."""
EPOCH = "epoch"


class Follower:
    """Follows the stream until cancelled."""

    def __init__(self, messenger: Messenger, people: People, reporter: Reporter) -> None:
        self._messenger = messenger
        self._people = people
        self._reporter = reporter
        self._loaded = False
        self._stream: HubStream | None = None
        self._everything = False
        self._seen: dict[str, int] = {}
        """The last event that came, by session: one that is followed twice comes twice. Unless all
        are followed, these are the sessions that are."""
        self.connected = False
        self.failure = ""
        """Why the stream could not be opened the last time."""

    async def run(self) -> None:
        """Follow, and connect again whenever the hub was away."""
        failures = 0
        while True:
            try:
                async with open_stream(self._people.where) as stream:
                    await self._follow(stream)
            except LinkError as error:
                if self.connected or not failures:
                    log.info("the hub is away: %s", error)
                self.failure = str(error)
            except HubRefused as error:
                log.error("the hub refuses the token of the Telegram front: %s", error)
                self.failure = str(error)
            except sqlite3.Error as error:
                # A full disk. What was not stored comes again with the next connection.
                log.error("events of the hub cannot be stored: %s", error)
                self.failure = str(error)
            failures = 0 if self.connected else failures + 1
            self.connected, self._stream = False, None
            pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
            await self._messenger.clock.sleep(pause)

    async def _follow(self, stream: HubStream) -> None:
        await self._begin(stream)
        async with background_tasks() as tasks:
            tasks.start_soon(_beat, stream)
            async with aclosing(stream.frames()) as frames:
                async for frame in frames:
                    await self._take(frame)

    async def _begin(self, stream: HubStream) -> None:
        state, epoch = self._messenger.state, stream.hello.epoch.encode()
        if (known := state.meta(EPOCH)) not in {None, epoch}:
            state.forget_numbers()
        if known != epoch:
            state.set_meta(EPOCH, epoch)
        self._reporter.restart()
        after = {row.session: row.turn for row in state.all_followed(SESSIONS)}
        self._seen = dict(after)
        self._stream = stream
        self._everything = bool(state.following_all())
        await self._send(after)

    async def want(self, session: str | None = None) -> None:
        """Follow a session from now on that is told of; or all, as long as a place wants that."""
        if self._stream is None:
            return  # the next connection begins with what is stored
        row = None if session is None else self._messenger.state.followed_session(session)
        everything = bool(self._messenger.state.following_all())
        if session is None and self._everything and not everything:
            await self._follow_own()
            return
        after = {} if row is None or row.session in self._seen else {row.session: row.turn}
        many = len(self._seen) + len(after) > MOST_SESSIONS
        if not after and everything <= self._everything:
            return
        self._everything = self._everything or everything or many
        self._seen |= after
        with suppress(LinkError):  # the reader of the frames gets it too
            await self._send({} if many else after)

    async def _follow_own(self) -> None:
        """Follow no sessions of others any more, and ours from where we are."""
        assert self._stream is not None
        rows = self._messenger.state.all_followed(SESSIONS)
        self._seen = {row.session: self._seen.get(row.session, row.turn) for row in rows}
        self._everything = False
        after = dict(self._seen)
        with suppress(LinkError):  # the reader of the frames gets it too
            await self._stream.unfollow_all()
            await self._send(after)

    async def _look_again(self, session: str) -> None:
        """Follow a session that was not there when it was asked for, if it was created since."""
        if self._messenger.state.followed_session(session) is None:
            return
        with suppress(QuarterdeckError):  # who creates it asks for it then
            await (await self._people.bot()).session(session).read()
            await self.want(session)

    async def _send(self, after: dict[str, int]) -> None:
        assert self._stream is not None
        epoch = self._stream.hello.epoch
        await self._stream.follow(after, epoch=epoch, all=self._everything, live=True, views=True)

    def _new(self, shapes: tuple[EventShape, ...]) -> tuple[EventShape, ...]:
        # Events of sessions that are not followed any more may be on their way.
        unknown = 0 if self._everything else maxsize
        found = tuple(
            shape for shape in shapes if shape.seq > self._seen.get(shape.session, unknown)
        )
        for shape in found:
            self._seen[shape.session] = shape.seq
        return found

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Following(sessions=places):
                for session, place in places.items():
                    if place.reason == "unknown":
                        self._seen.pop(session, None)
                        self._reporter.forget_session(session)
                        await self._look_again(session)
                self.connected, self.failure = True, ""
                with suppress(QuarterdeckError):  # the stream tells of a hub that is gone
                    hub = await self._people.bot()
                    self._messenger.projects = {
                        row.name: row.defaults for row in await hub.projects()
                    }
                    asks = await hub.asks()
                    if asks and not self._loaded:
                        await self._load()
                    self._reporter.asks(asks)
            case Events(events=came):
                shapes = self._new(came)
                if not self._loaded and self._reporter.reports(shapes):
                    await self._load()
                self._reporter.events(shapes)
            case Views(sessions=sessions):
                for shape in sessions:
                    self._reporter.view(shape)
            case Live():
                self._reporter.live(frame)

    async def _load(self) -> None:
        """Load what turns texts of a model into messages, in a thread."""
        await anyio.to_thread.run_sync(load_markdown)
        self._loaded = True


async def _beat(stream: HubStream) -> None:
    with suppress(LinkClosed):  # the reader of the frames gets it too
        await stream.beat()
