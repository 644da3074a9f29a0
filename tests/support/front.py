"""The HTTP front on a free port of loopback, with a small deck behind it and clients before it."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
from msgspec import Struct
from websockets.asyncio.client import ClientConnection

from quarterdeck.domain.coded import CodedText
from quarterdeck.fronts.http import Access, Listen, Pace, Places, Role, make_app, serve
from quarterdeck.fronts.http.asgi import ASGIApp
from quarterdeck.fronts.http.gate import Gate
from quarterdeck.fronts.http.people import PeopleStore
from quarterdeck.fronts.http.reach import Reaching
from quarterdeck.fronts.http.request_limits import RequestLimits
from quarterdeck.fronts.http.routes.push import Pushing
from quarterdeck.fronts.http.stream import StreamEndpoint
from quarterdeck.fronts.schedules.scheduler import Scheduler
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.cli_access import CliAccess
from quarterdeck.hub.reviews import ReviewService
from quarterdeck.hub.worktrees import WorktreeService
from quarterdeck.protocol.audit import ACCESS
from quarterdeck.protocol.events import Noted
from quarterdeck.runtime.connection_limits import ConnectionLimits
from support.bounds import SECONDS, TEST_SECONDS
from support.small_deck import SmallDeck
from support.web_sockets import connect

Json = dict[str, Any]

PATIENT = Pace(silence_seconds=TEST_SECONDS, send_seconds=TEST_SECONDS)
"""A client of a test sends no beats, and may be slow on a busy machine."""


class Front(Struct):
    """A running front."""

    deck: SmallDeck
    access: Access
    url: str
    endpoint: StreamEndpoint
    past: HistoryService

    def streams(self) -> int:
        """How many clients the stream has."""
        return len(self.endpoint._connections)

    @property
    def host(self) -> str:
        """Name and port."""
        return self.url.removeprefix("http://")

    def client(self, role: Role | None = Role.OWNER, **headers: str) -> httpx.AsyncClient:
        """An HTTP client with a token of that role; with None, without a token."""
        if role is not None:
            token = self.access.make_token(f"the {role.value}", role)
            headers["authorization"] = f"Bearer {token}"
        # Certificates take longer to load than most tests take, and this is plain HTTP.
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=SECONDS, verify=False)

    @contextlib.asynccontextmanager
    async def stream(self, role: Role = Role.OWNER, **headers: str) -> AsyncIterator[Talk]:
        """A connection to the stream, after its greeting."""
        token = self.access.make_token(f"the {role.value}", role)
        headers["authorization"] = f"Bearer {token}"
        async with connect(
            f"ws://{self.host}/api/stream", additional_headers=headers, max_size=None
        ) as socket:
            talk = Talk(socket)
            talk.greeting = await talk.hear("hello")
            yield talk


class Talk:
    """A client of the stream that keeps what it has not been asked for."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.greeting: Json = {}
        self._kept: list[Json] = []
        self.packed = 0
        """Frames that came compressed."""

    async def say(self, **frame: object) -> None:
        """Send a frame."""
        await self.socket.send(msgspec.json.encode(frame).decode())

    async def hear(self, *kinds: str) -> Json:
        """The next frame of one of these kinds; others are kept for later."""
        for frame in self._kept:
            if frame["t"] in kinds:
                self._kept.remove(frame)
                return frame
        while True:
            with anyio.fail_after(SECONDS):
                data = await self.socket.recv()
            if isinstance(data, bytes):
                data = gzip.decompress(data)
                self.packed += 1
            frame = msgspec.json.decode(data, type=Json)
            if frame["t"] in kinds:
                return frame
            self._kept.append(frame)

    async def follow(self, **frame: object) -> Json:
        """Follow, and give the answer."""
        await self.say(t="follow", id="f", **frame)
        return await self.hear("following", "failed")

    async def events(self, count: int) -> list[Json]:
        """That many events, in the order in which they came."""
        found: list[Json] = []
        while len(found) < count:
            found += (await self.hear("events"))["events"]
        return found

    async def closed(self) -> int | None:
        """Wait for the end, and give its code."""
        with anyio.fail_after(SECONDS):
            await self.socket.wait_closed()
        return self.socket.close_code


@contextlib.asynccontextmanager
async def front(
    folder: Path,
    *,
    places: Places | None = None,
    pace: Pace | None = None,
    runner: ASGIApp | None = None,
    cli: ASGIApp | None = None,
    static: Path | None = None,
    deck: SmallDeck | None = None,
    worktree_service: WorktreeService | None = None,
    reviews: ReviewService | None = None,
    push: Pushing | None = None,
    scheduling: bool = False,
    connections: ConnectionLimits | None = None,
    requests: RequestLimits | None = None,
    cli_access: CliAccess | None = None,
    reaching: Reaching | None = None,
) -> AsyncIterator[Front]:
    """Run a front while the block runs; with `scheduling` it has schedules, which start nothing."""
    deck = deck or SmallDeck()
    access = Access(folder, places=places)
    past = await HistoryService.open(
        deck, deck.journal, folder / "search.db", config_dir=folder / "claude"
    )
    scheduler = Scheduler(deck, folder)
    people = PeopleStore(folder)

    async def note(session: str, coded: CodedText, *, by: str = "", about: str = "") -> None:
        if session:
            await deck.session(session)
        entry = Noted(level=ACCESS, text="", coded=coded, by=by, about=about)
        await deck.journal.append(session or "changes", [entry])

    if scheduling:
        await scheduler.open()
    app = make_app(
        deck,
        access,
        runner_endpoint=runner,
        cli_endpoint=cli,
        cli_access=cli_access,
        static=static,
        pace=pace or PATIENT,
        history_service=past,
        worktree_service=worktree_service,
        reviews=reviews,
        pushing=push,
        scheduling=scheduler if scheduling else None,
        limits=requests,
        people_store=people,
        reaching=reaching,
        noting=note,
    )
    try:
        async with past.run(), serve(app, Listen(port=0), connections) as url:
            assert isinstance(app, Gate)
            assert isinstance(app._stream, StreamEndpoint)
            yield Front(deck, access, url, app._stream, past)
    finally:
        people.close()
        scheduler.close()
        await deck.workers.close()
