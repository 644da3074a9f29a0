"""A hub among others on one journal: what it holds, who holds the rest, how to reach them.

Owns the machines and sessions that this hub may write to, and the routing of a command to the hub
that holds its session. The journal decides: it stores nothing that a hub writes without holding it.
What is here only says in advance what the journal would say. A hub that is alone has no fleet.

A runner decides who holds its machine: with its `hello` the hub takes it, together with its
sessions that have a run. A CLI or a program that dials a hub by itself is held with its session.
Above is `hub`; below are the journal, and `Peers`, which carries a command to another hub.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol

import anyio
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, JournalError, StaleFence, StaleHead, StaleLease
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.journal.base import HubPlace, Journal, Lease, Owner
from quarterdeck.journal.ownership import PRESENT_MS
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL, UNMANAGED
from quarterdeck.protocol.views import MachineView

log = logging.getLogger(__name__)

TRIES = 8
"""How often a command is routed: its session may move between two attempts."""
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Before the next attempt, in seconds: a runner whose hub died dials another one meanwhile."""
SIGN_SECONDS = 5.0
"""How often a hub tells the others that it is there."""
PRESENT_SECONDS = PRESENT_MS / 1000
FORGET_SECONDS = 600.0
"""What is stored of a hub that told nothing for so long is deleted. One that stood still tells
where it is as soon as it goes on."""


class Asker(Value):
    """For whom a hub asks another one for something. With nothing of it, the other one refuses."""

    person: str = ""
    role: Role | None = None
    """The person's role. The other hub checks it again."""
    work: str = ""
    """Work of the hub itself, as a schedule: it was decided there, for no person."""


_asking: ContextVar[Asker] = ContextVar("asking", default=Asker())  # noqa: B039 - frozen


def act_as(role: Role, person: str = "") -> AbstractContextManager[None]:
    """What is submitted in the block is for a person with this role; the owner checks it again."""
    return ask_as(Asker(person=person, role=role))


def own_work(name: str) -> AbstractContextManager[None]:
    """What is submitted in the block is work of the hub itself, of this name."""
    return ask_as(Asker(work=name))


@contextmanager
def ask_as(asker: Asker) -> Iterator[None]:
    """What is submitted in the block is for this one."""
    token = _asking.set(asker)
    try:
        yield
    finally:
        _asking.reset(token)


class RemoteAgent(Value):
    """The run of an agent, and the other hub that has it."""

    owner: Owner
    session: str
    run: str


class PeerOffline(Conflict):
    """The hub that holds a session or machine cannot be reached. Nothing was done there."""

    def __init__(self, text: str) -> None:
        super().__init__("owner_away", text)


class Peers(Protocol):
    """The way to other hubs. Raises `PeerOffline` if nothing arrived there, else what they say."""

    async def submit(self, owner: Owner, command: AnyCommand, asker: Asker) -> Outcome:
        """Have a command done by its owner."""

    async def run(
        self, owner: Owner, machine: str, request: Raw, asker: Asker
    ) -> tuple[bool, bytes]:
        """Have a machine of its do something; whether that was refused, and the answer."""

    async def machines(self, place: HubPlace) -> list[MachineView]:
        """The machines that are connected there."""


class Fleet:
    """What this hub holds, and where the rest is."""

    def __init__(
        self,
        journal: Journal,
        url: str,
        peers: Peers,
        *,
        hub: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`url`: where other hubs reach this one; empty: that is told later."""
        self.id = hub or new_id()
        self.url = url
        self.peers = peers
        self.disown: Callable[[str, str | None], None] = lambda *_: None
        """Forget what is held of a machine, or of one session alone. The hub sets it."""
        self._journal = journal
        self._clock = clock
        self._signs: dict[str, tuple[int, float]] = {}
        """The last announcement of each other hub, and when it was made, by the own clock."""
        self._looked = clock()
        self.takes = 0
        """How often a machine was taken. What the journal refused before may be held again."""
        self._machines: dict[str, int] = {}
        self._sessions: set[str] = set()
        self._taking: dict[str, asyncio.Lock] = {}
        self._missing: dict[str, Owner] = {}
        """Machines whose hub was gone at the last look."""
        self._reachable = asyncio.Event()
        if url:
            self._reachable.set()

    def reached_at(self, url: str) -> None:
        """Other hubs reach this one here from now on."""
        self.url = url
        self._reachable.set()

    # --- what it holds ---------------------------------------------------------------------------

    def holds_machine(self, machine: str | None) -> bool:
        """Whether a run may be started there by this hub."""
        return (machine or LOCAL) in self._machines

    def holds(self, view: SessionView) -> bool:
        """Whether the run of a session is held here; of one without a run: whether it could be."""
        if view.run is not None and view.machine in UNMANAGED:
            return view.session in self._sessions
        machine = view.machine if view.run is not None else view.spec.machine
        return self.holds_machine(machine)

    async def take(self, machine: str, load: Callable[[], Awaitable[None]]) -> None:
        """The runner of a machine has come here: from now on its sessions are this hub's.

        `load` has them in memory. What was in memory is forgotten if another hub had it meanwhile.
        """
        async with self._taking.setdefault(machine, asyncio.Lock()):
            before = self._machines.get(machine)
            owner = await self._journal.machine_owner(machine)
            kept = owner is not None and owner.hub == self.id and owner.fence == before
            if not kept and before is not None:
                self.disown(machine, None)
            generation = await self._journal.raise_fence(machine, self.id)
            self._machines[machine] = generation
            self.takes += 1
            if kept:
                return
            try:
                await load()
                if self._machines.get(machine) != generation:  # another hub took it meanwhile
                    raise StaleFence(f"the machine {machine}")
            except BaseException:
                self.disown(machine, None)  # the next `hello` begins again
                raise

    async def adopt(self, load: Callable[[str], Awaitable[None]], lease: Lease | None) -> None:
        """Have the machines whose hub is gone, until their runners come to some hub.

        Only then do the clocks of their sessions go on: limits of time and money, and questions
        that wait no longer. A hub that stood still loses its machines, and the journal refuses what
        it writes; its runners then dial again. A hub that has just begun is not known yet, so a
        machine is taken only when its hub was missing before.
        """
        there = {place.hub for place in await self.others()} | {self.id}
        owners = await self._journal.machine_owners()
        alone = {machine: owner for machine, owner in owners.items() if owner.hub not in there}
        known, self._missing = self._missing, alone
        for machine, owner in alone.items():
            if known.get(machine) != owner:
                continue
            async with self._taking.setdefault(machine, asyncio.Lock()):
                try:
                    generation = await self._journal.raise_fence(
                        machine, self.id, after=owner.fence, lease=lease
                    )
                except StaleLease:
                    raise
                except StaleFence:
                    continue  # its runner was faster
                log.info("the machine %s has no hub: its sessions are looked after here", machine)
                self._machines[machine] = generation
                try:
                    await load(machine)
                except BaseException:
                    self.disown(machine, None)
                    raise

    async def take_session(self, session: str) -> None:
        """The CLI or program of a session has come here by itself."""
        await self._journal.take_over(session, self.id)
        self._sessions.add(session)

    def own_session(self, session: str) -> None:
        """A CLI or a program has begun a session here."""
        self._sessions.add(session)

    def lose(self, machine: str, session: str | None = None) -> None:
        """Another hub holds it."""
        if session is not None:
            self._sessions.discard(session)
        else:
            self._machines.pop(machine, None)

    def stale(self, session: str, machine: str | None) -> None:
        """The journal refused an append: what it was for belongs to another hub."""
        if machine in UNMANAGED:
            log.warning("session %s is held by another hub now", session)
            self.disown(machine or "", session)
        else:
            log.warning("the machine %s is held by another hub now", machine or LOCAL)
            self.disown(machine or LOCAL, None)

    async def look(self) -> None:
        """Notice machines that another hub has taken, also if nothing is written to them."""
        for machine, generation in list(self._machines.items()):
            owner = await self._journal.machine_owner(machine)
            taken = owner is None or owner.fence > generation
            if taken and self._machines.get(machine) == generation:
                self.stale("", machine)

    # --- where the rest is -----------------------------------------------------------------------

    async def owner(self, view: SessionView | None, machine: str | None) -> Owner | None:
        """The other hub that is to do something to a session, or on a machine; None: this one."""
        if view is not None and view.run is not None:
            if self.holds(view):
                return None
            found = await self._journal.owner(view.session)
        elif machine is None or self.holds_machine(machine):
            return None
        else:
            found = await self._journal.machine_owner(machine)
        return None if found is None or found.hub == self.id else found

    async def route(
        self,
        find: Callable[[], Awaitable[Owner | None]],
        here: Callable[[], Awaitable[Outcome]],
        command: AnyCommand,
    ) -> Outcome:
        """Do a command here, or have its owner do it; `find` says who that is.

        What the journal refuses has not happened, and what did not arrive neither: then it is
        routed again.
        """
        error: Conflict | JournalError | None = None
        for number in range(TRIES):
            if number:
                await anyio.sleep(PAUSES[number - 1])
            owner = await find()
            try:
                if owner is None:
                    return await here()
                return await self.peers.submit(owner, command, _asking.get())
            except StaleLease:
                raise  # not the session has moved, but the work
            except (StaleFence, StaleHead, PeerOffline) as again:
                error = again
        if isinstance(error, PeerOffline):
            raise error
        raise Conflict("moving", f"the session moves between hubs; try again: {error}")

    async def run_remote(self, machine: str, request: Raw) -> tuple[bool, bytes] | None:
        """Have something done on a machine of another hub; None if no other hub has it."""
        owner = await self._journal.machine_owner(machine)
        if owner is None or owner.hub == self.id:
            return None
        return await self.peers.run(owner, machine, request, _asking.get())

    async def others(self) -> list[HubPlace]:
        """The other hubs that are there."""
        places = await self._all_others()
        since = self._clock() - PRESENT_SECONDS
        return [place for place in places if place.url and self._signs[place.hub][1] > since]

    async def long_gone(self) -> list[str]:
        """Hubs that told nothing for so long that what is stored of them can be deleted."""
        places = await self._all_others()
        since = self._clock() - FORGET_SECONDS
        return [place.hub for place in places if self._signs[place.hub][1] <= since]

    async def _all_others(self) -> list[HubPlace]:
        """All other hubs that announced themselves and are not forgotten; sets `_signs`.

        How old an announcement is, is measured by the clock of this process, from when it was first
        seen: the clock of the database may be set, or be that of another server. Only for one that
        was there before this hub looked does the database tell its age.
        """
        began = self._clock()
        places = [place for place in await self._journal.hubs() if place.hub != self.id]
        unseen = began - self._looked
        signs: dict[str, tuple[int, float]] = {}
        for place in places:
            known = self._signs.get(place.hub)
            if known is not None and known[0] == place.at:
                signs[place.hub] = known
            else:
                age = max(0.0, place.age / 1000)
                signs[place.hub] = place.at, began - (age if known is None else min(age, unseen))
        self._signs, self._looked = signs, began
        return places

    async def remote_machines(self) -> list[MachineView]:
        """The machines that are connected to other hubs."""
        found: dict[str, MachineView] = {}
        for place in await self.others():
            try:
                for machine in await self.peers.machines(place):
                    if machine.connected:
                        found[machine.name] = machine
            except Conflict as error:
                log.info("hub %s does not tell its machines: %s", place.url, error)
        return list(found.values())

    async def show(self) -> None:
        """Tell the others that this hub is there, again and again, once it can be reached."""
        await self._reachable.wait()
        while True:
            try:
                await self._journal.announce(self.id, self.url)
            except JournalError as error:
                log.error("this hub cannot tell the others that it is there: %s", error)
            await anyio.sleep(SIGN_SECONDS)
