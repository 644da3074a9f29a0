"""The client passes the suite that every hub passes: over HTTP and the stream, to the real hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import anyio
import msgspec
import pytest

pytest.register_assert_rewrite("quarterdeck.testing.contracts.hub")

from quarterdeck.client import Hub, calls  # noqa: E402 - after the line above
from quarterdeck.domain.errors import NotFound  # noqa: E402
from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve  # noqa: E402
from quarterdeck.fronts.http.shapes import session_shape  # noqa: E402
from quarterdeck.hub.api import HubApi  # noqa: E402
from quarterdeck.hub.hub import Hub as RealHub  # noqa: E402
from quarterdeck.hub.permissions.service import PolicyService  # noqa: E402
from quarterdeck.hub.workers import Workers  # noqa: E402
from quarterdeck.journal import SqliteJournal  # noqa: E402
from quarterdeck.journal.base import Follower  # noqa: E402
from quarterdeck.journal.views import fold_all  # noqa: E402
from quarterdeck.protocol import commands as cmd  # noqa: E402
from quarterdeck.protocol.audit import AuditKind, AuditPage  # noqa: E402
from quarterdeck.protocol.session_view import SessionView  # noqa: E402
from quarterdeck.protocol.shapes import SessionPage  # noqa: E402
from quarterdeck.protocol.stored_events import RawEvents, Stored  # noqa: E402
from quarterdeck.protocol.usage import UsageBy, UsageReport  # noqa: E402
from quarterdeck.protocol.views import AskView, Deltas, EventShape, MachineView, Piece  # noqa: E402  # noqa: E402
from quarterdeck.testing.contracts.hub import HubBench, HubContract  # noqa: E402
from support import lines  # noqa: E402
from support.bounds import SECONDS  # noqa: E402
from support.front import PATIENT  # noqa: E402
from support.hub_machines import TestMachines, TestRun, hub_with  # noqa: E402

pytestmark = pytest.mark.anyio


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
    """The API of a hub, by the client alone; but for what a client has no call for."""

    def __init__(self, real: RealHub, clients: dict[str, Hub]) -> None:
        self._real = real
        self._clients = clients
        self.client = clients["ann"]
        self.heard: list[Stored] = []
        self.news = anyio.Event()

    async def listen(self) -> None:
        """Collect all events."""
        async for shape in self.client.follow(0):
            self.heard.append(stored_of(shape))
            self.news.set()
            self.news = anyio.Event()

    @property
    def epoch(self) -> str:
        return self._real.epoch

    @property
    def position(self) -> int:
        return self._real.position

    async def reaches(self, position: int) -> bool:
        return await self._real.reaches(position)

    @property
    def policy(self) -> PolicyService:
        return self._real.policy

    @property
    def workers(self) -> Workers:
        return self._real.workers

    async def submit(self, command: cmd.AnyCommand) -> cmd.Outcome:
        client = self._clients[command.by or "ann"]
        return await client.submit(msgspec.structs.replace(command, by=""))

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
            start = self._real.position if after is None else after
            return _Followed(self, lambda stored: stored.position > start)
        given = dict(cursors)
        made = _Followed(
            self, lambda stored: stored.session in given and stored.seq > given[stored.session]
        )
        made.ahead = {session: number for session, number in given.items() if number >= 1000}
        return made

    def live(self, listener: Callable[[Deltas], None]) -> Callable[[], None]:
        return self._real.live(listener)

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        return self._real.so_far(session)

    def pieces(self, listener: Callable[[Piece], None]) -> Callable[[], None]:
        return self._real.pieces(listener)


class ClientBench:
    """The real hub behind its HTTP front, and the hand that moves the processes."""

    def __init__(self, hub: HubApi, machines: TestMachines) -> None:
        self.hub = hub
        self._machines = machines
        self._greeted: set[str] = set()

    async def ask(self, session: str) -> str:
        run = self._run(session)
        if run.run not in self._greeted:
            self._greeted.add(run.run)
            await run.greet()
        await run.say(lines.asks_permission("q1"))
        (card,) = await self.hub.asks(session=session)
        return card.opened.ask

    async def end(self, session: str) -> None:
        await self._run(session).end()

    def _run(self, session: str) -> TestRun:
        return [run for run in self._machines.runs if run.session == session][-1]


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
            over = OverClient(hub, clients)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(over.listen)
            yield ClientBench(over, machines)
            tasks.cancel_scope.cancel()
