"""The client passes the suite that every hub passes: over HTTP and the stream, to the real hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import anyio
import msgspec
import pytest
from anyio.abc import TaskStatus

pytest.register_assert_rewrite("quarterdeck.testing.contracts.hub")

from quarterdeck.client import Hub, calls  # noqa: E402 - after the line above
from quarterdeck.client.feed import Feed  # noqa: E402
from quarterdeck.client.stream import open_stream  # noqa: E402
from quarterdeck.domain.errors import NotFound  # noqa: E402
from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve  # noqa: E402
from quarterdeck.fronts.http.shapes import session_shape  # noqa: E402
from quarterdeck.hub.permissions.service import PolicyService  # noqa: E402
from quarterdeck.hub.workers import Workers  # noqa: E402
from quarterdeck.journal import SqliteJournal  # noqa: E402
from quarterdeck.journal.base import Follower  # noqa: E402
from quarterdeck.journal.views import fold_all  # noqa: E402
from quarterdeck.protocol import commands as cmd  # noqa: E402
from quarterdeck.protocol import events as ev  # noqa: E402
from quarterdeck.protocol.audit import AuditKind, AuditPage  # noqa: E402
from quarterdeck.protocol.session_view import SessionView  # noqa: E402
from quarterdeck.protocol.shapes import SessionPage  # noqa: E402
from quarterdeck.protocol.stored_events import RawEvents, Stored  # noqa: E402
from quarterdeck.protocol.stream_frames import Events, Following, Live  # noqa: E402
from quarterdeck.protocol.usage import UsageBy, UsageReport  # noqa: E402
from quarterdeck.protocol.views import (  # noqa: E402
    AskView,
    Deltas,
    EventShape,
    MachineView,
    Piece,
    SessionShape,
)
from quarterdeck.testing.contracts.hub import (  # noqa: E402
    HubBench,
    HubContract,
    create,
    until,
)
from support.bounds import SECONDS  # noqa: E402
from support.front import PATIENT  # noqa: E402
from support.hub_machines import MachineBench, hub_with  # noqa: E402

pytestmark = pytest.mark.anyio


def is_message(shape: EventShape) -> bool:
    """Whether the event is a complete message of the model."""
    event = shape.event
    return isinstance(event, ev.Said) and b'"assistant"' in bytes(event.line)


def stored_of(shape: EventShape) -> Stored:
    """An event as the journal gives it."""
    return Stored(
        shape.session,
        shape.seq,
        shape.position,
        shape.at,
        shape.event,
        msgspec.json.encode(shape.event),
    )


class _Followed:
    """A choice of the events that `Hub.follow` gives."""

    def __init__(self, over: OverClient, wanted: Callable[[Stored], bool]) -> None:
        self._over = over
        self._wanted = wanted
        self._at = 0
        self.ahead: dict[str, int] = {}

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Stored]:
        for session, number in self.ahead.items():
            async with self._over.client.session(session) as followed:
                return [stored_of(await anext(followed.events(number)))]
        while True:
            found = self._over.heard[self._at :]
            self._at += len(found)
            if chosen := [stored for stored in found if self._wanted(stored)]:
                return chosen
            await self._over.news.wait()

    @property
    def behind(self) -> bool:
        return self._at < len(self._over.heard)

    async def next_text(self) -> list[Stored] | RawEvents:
        return await anext(self)


class OverClient:
    """The API of a hub, by the client alone."""

    def __init__(self, clients: dict[str, Hub]) -> None:
        self._clients = clients
        self.client = clients["ann"]
        self.heard: list[Stored] = []
        self.news = anyio.Event()
        self.epoch = ""
        self._listeners: list[Callable[[Deltas], None]] = []
        self._texts: dict[str, dict[tuple[str, int], Deltas]] = {}

    async def listen(self) -> None:
        """Collect all events."""
        async for shape in self.client.follow(0):
            self.heard.append(stored_of(shape))
            self.news.set()
            self.news = anyio.Event()

    async def listen_live(self, *, task_status: TaskStatus[None]) -> None:
        """Follow the text that is being generated, as a client that shows it does."""
        async with open_stream(await self.client.locate()) as stream:
            self.epoch = stream.hello.epoch
            await stream.follow({}, all=True, live=True, views=False)
            async for frame in stream.frames():
                match frame:
                    case Following():
                        task_status.started()
                    case Live(deltas=deltas, whole=whole):
                        self._take_live(deltas, whole)
                    case Events(events=shapes):
                        for shape in shapes:
                            if is_message(shape):
                                self._texts.pop(shape.session, None)
                    case _:
                        pass

    def _take_live(self, deltas: tuple[Deltas, ...], whole: bool) -> None:
        for each in deltas:
            texts = self._texts.setdefault(each.session, {})
            key = (each.message, each.block)
            before = "" if whole or key not in texts else texts[key].text
            texts[key] = msgspec.structs.replace(each, text=before + each.text)
            for listener in tuple(self._listeners):
                listener(each)

    @property
    def position(self) -> int:
        return max((stored.position for stored in self.heard), default=0)

    async def reaches(self, position: int) -> bool:
        return self.position >= position

    @property
    def policy(self) -> PolicyService:
        raise AssertionError("clients have calls for policies, and no such object")

    @property
    def workers(self) -> Workers:
        raise AssertionError("clients have no processes of the hub")

    async def submit(self, command: cmd.AnyCommand) -> cmd.Outcome:
        """Send a command; when it is done, its events have been heard."""
        client = self._clients[command.by or "ann"]
        outcome = await client.submit(msgspec.structs.replace(command, by=""))
        try:
            head = (await client.session(outcome.session).read()).head
        except NotFound:  # it is deleted, which is its last event
            while not any(self._is_deletion(stored, outcome.session) for stored in self.heard):
                await self.news.wait()
            return outcome
        while not any((s.session, s.seq) == (outcome.session, head) for s in self.heard):
            await self.news.wait()
        return outcome

    @staticmethod
    def _is_deletion(stored: Stored, session: str) -> bool:
        return stored.session == session and isinstance(stored.event, ev.SessionDeleted)

    async def sessions(
        self, *, after: str | None = None, limit: int = 100, archived: bool = False
    ) -> list[SessionView]:
        query = {"after": after, "limit": limit, "archived": archived}
        page = await self.client.call(calls.get("/api/sessions", SessionPage, query))
        return [await self.session(shape.session) for shape in page.sessions]

    async def session(self, session: str) -> SessionView:
        """The fold of what the client reads; it is what the hub's own view shows."""
        view = fold_all(None, await self.events(session))
        if view is None:
            raise NotFound("session", session)
        shown = await self.client.session(session).read()
        if shown.head == view.head:
            assert shown == session_shape(view, offers=True)
        return view

    def view(self, session: str) -> SessionView | None:
        return None

    async def events(self, session: str, *, after: int = 0, limit: int = 500) -> list[Stored]:
        page = await self.client.call(calls.events(session, after, limit))
        return [stored_of(shape) for shape in page.events]

    async def asks(self, *, session: str | None = None, ended: bool = False) -> list[AskView]:
        return [*(await self.client.asks(session, ended=ended))]

    async def audit(
        self,
        *,
        session: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 1000,
    ) -> list[Stored]:
        page = await self.client.call(calls.audit(session, after, before))
        return [stored_of(shape) for shape in page.events[:limit]]

    async def audit_page(
        self,
        kind: AuditKind,
        *,
        before: int,
        after: int = 0,
        session: str | None = None,
        limit: int = 1000,
    ) -> AuditPage:
        del limit
        page = await self.client.call(calls.audit(session, after, before, kind))
        return AuditPage(entries=tuple(map(stored_of, page.events)), next=page.next)

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> UsageReport:
        return await self.client.usage(by)

    async def machines(self) -> list[MachineView]:
        return list(await self.client.machines())

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        if cursors is None:
            start = self.position if after is None else after
            return _Followed(self, lambda stored: stored.position > start)
        given = dict(cursors)
        made = _Followed(
            self, lambda stored: stored.session in given and stored.seq > given[stored.session]
        )
        made.ahead = {session: number for session, number in given.items() if number >= 1000}
        return made

    def live(self, listener: Callable[[Deltas], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        return tuple(self._texts.get(session, {}).values())

    def pieces(self, listener: Callable[[Piece], None]) -> Callable[[], None]:
        raise AssertionError("clients get text, and no lines that are not journalled")


class _Viewer:
    """A listener of one session's feed."""

    def __init__(self) -> None:
        self.frames: list[Live] = []

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """Not looked at."""

    def view(self, shape: SessionShape) -> None:
        """Not looked at."""

    def live(self, frame: Live) -> None:
        self.frames.append(frame)

    def connection_lost(self, reason: str) -> None:
        raise AssertionError(reason)

    def connection_made(self) -> None:
        """It is there."""


class TestClient(HubContract):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def bench(self) -> AsyncIterator[HubBench]:
        async with (
            await SqliteJournal.open(self.folder / "journal.db") as journal,
            AsyncExitStack() as stack,
        ):
            hub, machines = hub_with(journal)
            access = Access(self.folder)
            await stack.enter_async_context(hub.run())
            app = make_app(hub, access, pace=PATIENT)
            url = await stack.enter_async_context(serve(app, Listen(port=0)))
            clients: dict[str, Hub] = {}
            for name in ("ann", "bob"):
                client = Hub(url, access.make_token(name, Role.OWNER), timeout=SECONDS)
                clients[name] = await stack.enter_async_context(client)
            over = OverClient(clients)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(over.listen)
            await tasks.start(over.listen_live)
            yield MachineBench(over, machines)
            tasks.cancel_scope.cancel()

    async def test_a_client_that_comes_in_mid_message_gets_the_text_so_far(self) -> None:
        async with self.bench() as bench:
            session = await create(bench.hub)
            await bench.write(session, "half ")
            await bench.write(session, "a word")
            viewer = _Viewer()
            assert isinstance(bench.hub, OverClient)
            feed = Feed(bench.hub.client.locate, session, 0, viewer)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(feed.run)
                await until(lambda: bool(viewer.frames))
                await bench.write(session, ", and more")
                await until(lambda: len(viewer.frames) == 2)
                tasks.cancel_scope.cancel()
            texts = [("".join(each.text for each in f.deltas), f.whole) for f in viewer.frames]
            assert texts == [("half a word", True), (", and more", False)]
