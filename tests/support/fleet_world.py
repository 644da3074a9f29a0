"""Two hubs on one journal, two runners, two followers, and a network between each pair.

Each hub is a `World` of its own without a runner; the runners know the addresses of both. All can
be killed. A hub may also stand still (SIGSTOP), past the moment when the other one took its
machines, and so may its connections to the database.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
import psycopg
from msgspec.structs import replace

from quarterdeck.journal.engines import is_database
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.events import AnyEvent
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.fault_duties import DutyOptions
from support.fault_hub import Row
from support.fault_nursery import Child, Nursery
from support.fault_world import HubGone, World, _end
from support.fleet_followers import Follower
from support.processes import Processes
from support.relay import Relay, relay_to

MACHINES = ("m0", "m1")
FOLLOWERS = 2


class Side(World):
    """One hub of several. `link` is the network of its runners."""

    beats = 12
    number = 0
    place = ""
    paused = False
    hook: str | None = None
    """The address of a webhook, if the hubs have duties."""
    began = 0.0
    web: Relay
    """The network of those who follow."""
    peers: Relay
    """The network of the other hub."""

    @property
    def networks(self) -> tuple[Relay, Relay, Relay]:
        return self.link, self.web, self.peers

    @property
    def name(self) -> str:
        """Its name at the database."""
        return f"hub{self.number}"

    async def start_hub(self) -> None:
        log = self.folder / f"hub{self.number}.log"
        place = f"{self.place}&application_name={self.name}" if self.in_database else self.place
        reached_at = f"http://127.0.0.1:{self.peers.port}"
        more = () if self.hook is None else (self._duties(self.hook),)
        self._hub = hub = await self._start("fleet", log, place, self.token_file, reached_at, *more)
        with anyio.fail_after(SECONDS):
            port = int(await hub.stdout.readline())
        for network in self.networks:
            network.target = port
        self._group.start_soon(self._listen, hub)

    def _duties(self, hook: str) -> str:
        home = self.folder / f"home{self.number}"
        options = DutyOptions(home=str(home), hook=hook, began=self.began)
        return msgspec.json.encode(options).decode()

    @property
    def in_database(self) -> bool:
        """Whether the journal is in a database."""
        return is_database(self.place)

    def pause(self) -> None:
        """Have the hub stand still, and its runners notice that it does not answer."""
        if self._hub is not None:
            self.paused = True
            self._hub.send_signal(signal.SIGSTOP)
            self.link.cut()
            self.link.refusing = True

    def go_on(self) -> None:
        """Wake it up."""
        self.link.refusing = False
        if self._hub is not None and self.paused:
            self._hub.send_signal(signal.SIGCONT)
        self.paused = False

    # --- its way to the database ---------------------------------------------------------------

    def cut_database(self) -> None:
        """Have the server end its connections, whatever is on its way in them. Blocks."""
        self._of_backends("pg_terminate_backend(pid)")

    def stall_database(self) -> list[int]:
        """Have its connections stand still, with the locks that they hold. Blocks."""
        pids = self._of_backends("pid")
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return pids

    def _of_backends(self, what: str) -> list[int]:
        query = f"SELECT {what} FROM pg_stat_activity WHERE application_name = %s"
        try:
            with psycopg.connect(self.place, autocommit=True) as connection:
                return [row[0] for row in connection.execute(query.encode(), [self.name])]
        except psycopg.OperationalError:
            return []  # it was killed a moment ago


class FleetWorld:
    """What a schedule plays with; as far as it goes, a `World`."""

    def __init__(
        self,
        folder: Path,
        nursery: Nursery,
        processes: Processes,
        place: str,
        hook: str | None = None,
    ) -> None:
        self.folder = folder
        self.place = place
        self.hook = hook
        self.chance = random.Random(0)
        self.sides: list[Side] = []
        self.runners: dict[str, Child | None] = dict.fromkeys(MACHINES)
        self.followers = [
            Follower(lambda: [side.web.port for side in self.sides], number)
            for number in range(FOLLOWERS)
        ]
        self._nursery = nursery
        self._processes = processes
        self._children: list[Child] = []
        self._secret = secrets.token_urlsafe(24)

    # --- the hubs ------------------------------------------------------------------------------

    @property
    def link(self) -> Relay:
        """A network of one hub."""
        return self.chance.choice(self.chance.choice(self.sides).networks)

    @property
    def token_file(self) -> Path:
        """The token of a machine, for strangers."""
        return self.folder / "token-m0"

    def _there(self) -> Side:
        there = [side for side in self.sides if not side.paused and side._hub is not None]
        if not there:
            raise HubGone
        return self.chance.choice(there)

    async def submit(self, command: AnyCommand) -> Outcome:
        """Have any of the hubs do something."""
        return await self._there().submit(command)

    async def view(self, session: str) -> SessionView:
        """A session as any of the hubs sees it."""
        return await self._there().view(session)

    async def events(self, session: str, after: int = 0) -> list[tuple[Row, AnyEvent]]:
        """The events of a session after a number."""
        return await self._there().events(session, after)

    async def disk_full(self, full: bool) -> None:
        """Leave a hub no room, or give all of them room again."""
        for side in [self._there()] if full else self.sides:
            if side._hub is not None and not side.paused:
                await side.disk_full(full)

    # --- the runners ---------------------------------------------------------------------------

    async def start_runner(self, name: str) -> None:
        """Start the runner of a machine; it prefers one hub."""
        sides = self.sides if name == MACHINES[0] else self.sides[::-1]
        urls = " ".join(f"ws://127.0.0.1:{side.link.port}" for side in sides)
        log, home = self.folder / f"runner-{name}.log", self.folder / f"runner-{name}"
        token = self.folder / f"token-{name}"
        child = await self._nursery.start(self._processes, "runner", log, home, urls, token, name)
        self._children.append(child)
        self.runners[name] = child

    async def kill_runner(self, name: str, number: int = signal.SIGKILL) -> None:
        """End it at once."""
        child, self.runners[name] = self.runners[name], None
        await _end(child, number)

    def spec(self, name: str, seed: int, sandbox: SandboxMode = "off") -> SessionSpec:
        """A session on one of the machines."""
        made = self.sides[0].spec(name, seed, sandbox)
        return replace(made, machine=MACHINES[seed % len(MACHINES)])

    def records(self, name: str) -> Path:
        """Where the CLIs of a session write down what they write and read."""
        return self.sides[0].records(name)

    # --- inside --------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Two hubs and two runners, ended with the block."""
        (self.folder / "token").write_text(self._secret)
        for name in MACHINES:
            (self.folder / f"token-{name}").write_text(f"{self._secret}/{name}")
        began = time.time()
        async with AsyncExitStack() as stack, anyio.create_task_group() as group:
            for number in range(2):
                networks = [await stack.enter_async_context(relay_to()) for _ in range(3)]
                side = Side(self.folder, self._nursery, self._processes, networks[0])
                side.web, side.peers = networks[1:]
                side.number, side.place, side._group = number, self.place, group
                side.hook, side.began = self.hook, began
                self.sides.append(side)
            try:
                for side in self.sides:
                    await side.start_hub()
                for name in MACHINES:
                    await self.start_runner(name)
                for follower in self.followers:
                    group.start_soon(follower.run)
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    for side in self.sides:
                        side.go_on()
                    for name in MACHINES:
                        await self.kill_runner(name, signal.SIGTERM)
                    for side in self.sides:
                        await side.kill_hub(signal.SIGTERM)
                group.cancel_scope.cancel()
                for child in [*self._children, *(c for s in self.sides for c in s._children)]:
                    child.close()


@asynccontextmanager
async def fleet_world(
    folder: Path, nursery: Nursery, processes: Processes, place: str, hook: str | None = None
) -> AsyncIterator[FleetWorld]:
    """A world while the block runs. `place`: the journal. `hook`: see `fault_duties`."""
    one = FleetWorld(folder, nursery, processes, place, hook)
    async with one.running():
        yield one
