"""Hubs on one journal, and the runner of a machine in the hand of a test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from msgspec import Raw

from quarterdeck.domain.errors import StaleFence, StaleHead
from quarterdeck.hub.fleet import Asker, Fleet, PeerOffline
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.base import HubPlace, Journal, Owner
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import AnyCommand, CreateSession, Outcome
from quarterdeck.protocol.events import Sent
from quarterdeck.protocol.machine_requests import MACHINE_REQUESTS
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Hello,
    Lines,
    RunReport,
    Start,
    Started,
    Vitals,
    Welcome,
    Write,
    Written,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import MachineView
from support import lines
from support.bounds import SECONDS
from support.runner_sockets import Socket

PROMPT = "00000000-0000-4000-8000-00000000000{}"


class _Holder:
    """Who has the token of programs."""

    name = "local"
    role = Role.PROGRAM


class Side:
    """A hub, and the way to the others: by calls, as the HTTP between them has its own tests."""

    def __init__(self, all_: dict[str, Side], journal: Journal, name: str) -> None:
        self.all = all_
        self.up = True
        self.journal = journal
        self.passed: list[tuple[AnyCommand, Asker]] = []
        self.asked: list[Asker] = []
        self.fleet = Fleet(journal, f"http://{name}", self, hub=name)
        self.hub = Hub(
            journal,
            {"right": "box", "other": "far"}.get,
            fleet=self.fleet,
            check_program=lambda token: _Holder() if token == "right" else None,
        )
        all_[name] = self

    def _there(self, hub: str) -> Side:
        if not self.all[hub].up:
            raise PeerOffline(f"{hub} is gone")
        return self.all[hub]

    async def submit(self, owner: Owner, command: AnyCommand, asker: Asker) -> Outcome:
        self.passed.append((command, asker))
        try:
            return await self._there(owner.hub).hub.submit_here(command)
        except (StaleFence, StaleHead) as error:
            raise PeerOffline(str(error)) from error

    async def run(
        self, owner: Owner, machine: str, request: Raw, asker: Asker
    ) -> tuple[bool, bytes]:
        self.asked.append(asker)
        return await self._there(owner.hub).hub.ask_machine(machine, request)

    async def machines(self, place: HubPlace) -> list[MachineView]:
        return self._there(place.hub).hub.machines_here()


@asynccontextmanager
async def two_hubs(
    journals: tuple[Journal, Journal] | None = None,
) -> AsyncIterator[tuple[Side, Side]]:
    """`journals`: two on one database; else one in memory is shared."""
    if journals is None:
        journal = MemoryJournal()
        journals = journal, journal.beside()
    all_: dict[str, Side] = {}
    a, b = Side(all_, journals[0], "a"), Side(all_, journals[1], "b")
    async with a.hub.run(), b.hub.run():
        yield a, b


class Machine:
    """The runner of a machine, at one hub after the other."""

    def __init__(self, name: str = "box", token: str = "right") -> None:
        self.name, self.token = name, token
        self.runs: list[RunReport] = []
        self.stack = AsyncExitStack()
        self.socket = Socket()

    async def dial(self, side: Side) -> None:
        """Be at this hub from now on; the old sockets stay open, as those of a hub that hangs."""
        self.socket = Socket()
        await self.stack.enter_async_context(
            self.socket.on(side.hub.runners, "/runner", self.token)
        )
        self.socket.say(
            Hello(
                machine=self.name,
                runner="r",
                protocol=PROTOCOL,
                version="0",
                pid=1,
                runs=tuple(self.runs),
                can=(MACHINE_REQUESTS,),
            )
        )
        assert isinstance(await self.socket.hear(), Welcome)
        self.socket.say(Vitals(runs=len(self.runs), memory_available=0, load=0.0))

    async def take_start(self) -> Start:
        start = await self.socket.hear()
        assert isinstance(start, Start)
        self.runs.append(RunReport(run=start.run, session=start.session, said=0, written=0))
        return start

    async def run(self, side: Side, run: str, written: int = 0) -> Socket:
        """The socket of a run at a hub."""
        socket = Socket()
        await self.stack.enter_async_context(
            socket.on(side.hub.runners, f"/runner/runs/{run}", self.token)
        )
        socket.say(Started(pid=42, version="2.1.325", directory="/work"))
        socket.say(Written(upto=written))
        return socket

    async def greeted(self, side: Side, run: str) -> Socket:
        """A run whose CLI has answered `initialize`."""
        socket = await self.run(side, run)
        assert isinstance(await socket.hear(), Ack)
        assert isinstance(await socket.hear(), Write)
        view = await side.hub.session(self.runs[0].session)
        events = await side.journal.read(view.session)
        greeting = next(e.event for e in reversed(events) if isinstance(e.event, Sent))

        request = json.loads(bytes(greeting.line))["request_id"]
        socket.say(Written(upto=1))
        socket.say(Lines(first=1), lines.success_answer(request).rstrip(b"\n"))
        await self.journalled(side, view.session, 1)
        return socket

    async def journalled(self, side: Side, session: str, said: int) -> None:
        with anyio.fail_after(SECONDS):
            while (await side.hub.session(session)).said < said:  # noqa: ASYNC110
                await anyio.sleep(0.005)


@asynccontextmanager
async def machine(name: str = "box", token: str = "right") -> AsyncIterator[Machine]:
    one = Machine(name, token)
    async with one.stack:
        yield one


def create(session: str = "s", name: str | None = "box") -> CreateSession:
    return CreateSession(
        spec=SessionSpec(directory="/work", machine=name), session=session, by="ada"
    )
