"""A hub among others on one journal, composed for `serve`. A hub that is alone needs none of it.

Owns the parts that only several hubs have: the way between them, files that they share, the duties
that one of them does for all, and the comparison of their configurations.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from quarterdeck.config import Settings
from quarterdeck.domain.addresses import is_loopback_url
from quarterdeck.domain.errors import JournalError, QuarterdeckError, StaleLease
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.fronts.http.asgi import ASGIApp
from quarterdeck.fronts.http.people import FILE as PEOPLE
from quarterdeck.fronts.http.people import PeopleStore, renumber_united
from quarterdeck.fronts.peers import (
    Forward,
    LiveFeed,
    PeerClient,
    PeerEndpoint,
    Sealer,
    shared_secret,
)
from quarterdeck.fronts.push.subscriptions import SubscriptionStore
from quarterdeck.fronts.schedules.scheduler import Scheduler
from quarterdeck.fronts.schedules.store import FILE as SCHEDULES
from quarterdeck.fronts.webhooks.outbox import FILE as WEBHOOKS
from quarterdeck.hub.fleet import Fleet
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.base import HubPlace, Journal, Lease
from quarterdeck.journal.ownership import hold_lease, lease_for
from quarterdeck.protocol.coded_texts import alarm_advice, alarm_text
from quarterdeck.protocol.shapes import HubAlarm
from quarterdeck.runtime.duties import SharedPlace
from quarterdeck.runtime.files import replace_file
from quarterdeck.runtime.machine_names import host_name
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service.shared_files import SharedFiles
from quarterdeck.service.shared_rows import LeasedRows, SharedRows
from quarterdeck.service.telegram import STATE as TELEGRAM

log = logging.getLogger(__name__)

MACHINE = "machine.id"
"""The file with this folder's part of the machine's name."""
COMPARE_SECONDS = 5.0
LEASE_SECONDS = 10.0
RENEW_SECONDS = 2.5
_NAMESPACE, _PLACES = "configurations", "places"
_OWN = frozenset({"server", "journal", "log", "runner", "telemetry"})
"""Sections in which hubs may differ."""


class Digests(Value):
    """What a hub was configured with."""

    configuration: str
    policy: str


def machine_name(home: Path, settings: Settings) -> str:
    """The name of this machine among those of several hubs; the same after each start."""
    if settings.journal.machine is not None:
        return settings.journal.machine
    file = home / MACHINE
    if not file.exists():
        replace_file(file, new_id()[-6:].encode())
    return f"{host_name()}-{file.read_text(encoding='ascii').strip()}"


class Together:
    """What several hubs have in common."""

    def __init__(self, journal: Journal, settings: Settings, home: Path, secret: bytes) -> None:
        hub = new_id()
        given = settings.journal
        self.journal = journal
        self.machine = machine_name(home, settings)
        self.files = SharedFiles(journal, home)
        self._sealer = Sealer(secret, hub)
        ca_file = None if given.hub_ca_file is None else Path(given.hub_ca_file)
        self._client = PeerClient(self._sealer, ca_file)
        self._address = given.hub_address
        self.fleet = Fleet(journal, "", self._client, hub=hub)
        self._settings = settings
        self._alarms: tuple[HubAlarm, ...] = ()
        self._silent: frozenset[str] = frozenset()
        """Hubs that did not answer at the last look."""
        self._warned = False
        self._home = home
        self._rows: list[SharedRows | LeasedRows] = []
        self._looks: list[tuple[SharedRows, Callable[[], None]]] = []
        self._endpoint: PeerEndpoint | None = None

    @classmethod
    async def open(cls, journal: Journal, settings: Settings, home: Path) -> Together | None:
        """None for a hub that is alone. The shared files are those of the others already."""
        if settings.journal.url is None:
            return None
        made = cls(journal, settings, home, await shared_secret(journal))
        await made.files.carry()
        return made

    def rows(
        self,
        name: str,
        *,
        duty: str = "",
        joined: Callable[[sqlite3.Connection], None] = lambda _: None,
    ) -> SharedRows:
        """The rows of a small SQLite file, for all hubs."""
        made = SharedRows(self.journal, self._home / name, duty=duty, joined=joined)
        self._rows.append(made)
        return made

    def leased_rows(self, name: str, duty: str) -> LeasedRows:
        """The rows of a file that only the hub with this duty uses."""
        made = LeasedRows(self.journal, self._home / name, duty)
        self._rows.append(made)
        return made

    def share(
        self,
        policies: Policies,
        subscriptions: SubscriptionStore,
        people: tuple[SharedRows, PeopleStore],
        schedules: tuple[SharedRows, Scheduler],
    ) -> None:
        """These hold in memory what is in shared files."""
        (rows, store), (starts, scheduler) = people, schedules
        rows.changed = store.note_remote_change
        starts.changed = lambda _: scheduler.note_remote_change()
        self._looks = [(rows, store.look), (starts, scheduler.look)]
        self.files.locks |= {
            "grants.json": policies.write_lock,
            "push.json": subscriptions.write_lock,
            "push.key": subscriptions.write_lock,
            "schedules.json": scheduler.definitions.write_lock,
        }
        loop = asyncio.get_running_loop()

        def note_change(name: str) -> None:
            policies.note_change(name)
            subscriptions.note_change(name)
            if name == "schedules.json":
                loop.call_soon_threadsafe(scheduler.note_remote_change)

        self.files.taken = note_change

    def forward(self, hub: Hub) -> Forward:
        """What passes on the requests of agents whose session another hub has."""
        return Forward(self._client, hub.remote_agent)

    def endpoint(self, hub: Hub, agents: ASGIApp) -> PeerEndpoint:
        """What other hubs call. `agents` answers agents."""
        self._endpoint = PeerEndpoint(hub, self._sealer, agents)
        return self._endpoint

    @asynccontextmanager
    async def run(self, hub: Hub, address: str) -> AsyncIterator[None]:
        """Be one of several while the block runs. `address`: the hub's own."""
        live = LiveFeed(self.fleet, self._client, self._sealer, hub.live_text)
        self.fleet.reached_at(self._address or address)
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self.files.run)
                tasks.start_soon(live.run)
                tasks.start_soon(self._compare, hub.policies)
                for rows, look in self._looks:
                    tasks.start_soon(rows.run, look)
                for each in self._rows:
                    tasks.start_soon(each.keep_small)
                yield
        finally:
            if self._endpoint is not None:
                self._endpoint.close()
            with anyio.move_on_after(2.0, shield=True):
                await self._client.close()
                with suppress(JournalError):  # another hub forgets this one later
                    await self._forget(self.fleet.id)

    # --- duties ----------------------------------------------------------------------------------

    async def on_duty(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work while this hub has the lease for it; another hub does it otherwise.

        Work that comes to an end by itself is over.
        """
        over = False
        while not over:
            try:
                lease = await self.journal.take_lease(name, self.fleet.id, LEASE_SECONDS)
            except JournalError as error:
                log.error("%s: whose duty it is, is not known: %s", name, error)
                lease = None
            if lease is None:
                await anyio.sleep(RENEW_SECONDS)
                continue
            log.info("%s: this hub does it", name)
            try:
                over = await self._do_while_leased(lease, work)
            finally:
                with anyio.move_on_after(1.0, shield=True), suppress(JournalError):
                    await self.journal.release_lease(lease)

    async def _do_while_leased(self, lease: Lease, work: Callable[[], Awaitable[None]]) -> bool:
        """Do the work until it is over, or another hub took the lease; whether it is over."""
        over = False
        async with anyio.create_task_group() as tasks:

            async def do() -> None:
                nonlocal over
                with hold_lease(lease):
                    try:
                        await work()
                        over = True
                    except* StaleLease as stale:
                        log.warning("%s: %s", lease.name, stale.exceptions[0])
                tasks.cancel_scope.cancel()

            tasks.start_soon(do)
            until = anyio.current_time() + LEASE_SECONDS
            while True:
                await anyio.sleep(RENEW_SECONDS)
                began = anyio.current_time()
                try:
                    kept = await self.journal.renew_lease(lease, LEASE_SECONDS)
                except JournalError as error:
                    log.error("%s: the lease is not renewed: %s", lease.name, error)
                    kept = anyio.current_time() < until - RENEW_SECONDS
                else:
                    until = began + LEASE_SECONDS
                if not kept:
                    log.warning("%s: another hub does it now", lease.name)
                    tasks.cancel_scope.cancel()
        return over

    def place(self, name: str) -> SharedPlace:
        """How far a duty is that one hub does for all."""
        return _Place(self.journal, name)

    # --- configurations --------------------------------------------------------------------------

    def change(self, settings: Settings) -> None:
        """The configuration has changed."""
        self._settings = settings

    async def _compare(self, policies: Policies) -> None:
        """Tell, again and again, if another hub has another configuration or policy."""
        while True:
            try:
                await self._compare_once(policies)
                await self._forget_dead()
            except (JournalError, *DECODE_ERRORS) as error:
                log.error("the configurations of the hubs are not compared: %s", error)
            await anyio.sleep(COMPARE_SECONDS)

    async def _forget(self, hub: str) -> None:
        """Delete what is stored of a hub, and the notes that it was deleted."""
        await self.journal.forget_hub(hub)
        version = await self.journal.share(_NAMESPACE, hub, None)
        await self.journal.forget_removed(_NAMESPACE, before=version)

    async def _forget_dead(self) -> None:
        """Forget the hubs that were killed: each start of a hub has an id of its own."""
        for hub in await self.fleet.long_gone():
            log.info("hub %s is gone: it is forgotten", hub)
            await self._forget(hub)
        known = {place.hub for place in await self.journal.hubs()} | {self.fleet.id}
        for hub in (await self.journal.shared_values(_NAMESPACE)).keys() - known:
            await self._forget(hub)

    async def _compare_once(self, policies: Policies) -> None:
        mine = Digests(
            configuration=digest(self._settings),
            policy=await anyio.to_thread.run_sync(policies.digest),
        )
        await self.journal.share(_NAMESPACE, self.fleet.id, msgspec.json.encode(mine))
        places = await self.fleet.others()
        present = {place.hub: place.url for place in places}
        self._warn_of_loopback(present)
        found = await self._unreachable(places)
        for hub, value in (await self.journal.shared_values(_NAMESPACE)).items():
            if hub not in present:
                continue
            theirs = msgspec.json.decode(value.value, type=Digests)
            if theirs.configuration != mine.configuration:
                found.append(HubAlarm(code="other_configuration", hub=present[hub]))
            if theirs.policy != mine.policy:
                found.append(HubAlarm(code="other_policy", hub=present[hub]))
        for alarm in found:
            if alarm not in self._alarms:
                log.error("ALARM: %s: %s", alarm_text(alarm), alarm_advice(alarm))
        self._alarms = tuple(found)

    def alarms(self) -> tuple[HubAlarm, ...]:
        """Which other hubs have another configuration or policy, or do not answer."""
        return self._alarms

    async def _unreachable(self, places: list[HubPlace]) -> list[HubAlarm]:
        """The other hubs that answer nothing, at two looks after each other: not at one, since a
        hub that is being started or was just killed does not answer either.
        """
        silent: dict[str, str] = {}

        async def ask(place: HubPlace) -> None:
            try:
                await self._client.machines(place)
            except QuarterdeckError as error:
                log.info("the hub at %s does not answer: %s", place.url, error)
                silent[place.hub] = place.url

        async with anyio.create_task_group() as tasks:
            for place in places:
                tasks.start_soon(ask, place)
        again = [url for hub, url in sorted(silent.items()) if hub in self._silent]
        self._silent = frozenset(silent)
        return [HubAlarm(code="unreachable", hub=url) for url in again]

    def _warn_of_loopback(self, others: Mapping[str, str]) -> None:
        """Other hubs are there, and this one tells them an address that is their own machine."""
        if others and not self._warned and is_loopback_url(self.fleet.url):
            self._warned = True
            log.warning(
                "this hub announces the address %s, where hubs on other machines"
                " cannot reach it: set journal.hub_address",
                self.fleet.url,
            )


class SharedStores(Struct):
    """The small SQLite files that all hubs have alike."""

    people: SharedRows
    schedules: SharedRows
    webhooks: SharedRows
    telegram: LeasedRows

    @classmethod
    def of(cls, together: Together) -> SharedStores:
        """Those of a hub."""
        return cls(
            people=together.rows(PEOPLE, joined=renumber_united),
            schedules=together.rows(SCHEDULES, duty="schedules"),
            webhooks=together.rows(WEBHOOKS, duty="webhooks"),
            telegram=together.leased_rows(TELEGRAM, "telegram"),
        )


class _Place:
    """A position in the journal's store."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal = journal
        self._name = name

    async def load(self) -> int | None:
        try:
            found = await self._journal.shared_value(_PLACES, self._name)
        except JournalError as error:
            log.error("%s: how far it is, is not known: %s", self._name, error)
            return None
        return None if found is None else int(found.value)

    async def save(self, position: int) -> None:
        try:
            await self._journal.share(
                _PLACES, self._name, str(position).encode(), lease=lease_for(self._name)
            )
        except StaleLease:
            raise
        except JournalError as error:
            log.error("%s: how far it is, is not stored: %s", self._name, error)


def digest(settings: Settings) -> str:
    """What must be alike in the configurations of all hubs."""
    shared = {
        name: value for name, value in msgspec.structs.asdict(settings).items() if name not in _OWN
    }
    return hashlib.sha256(msgspec.json.encode(shared, order="sorted")).hexdigest()
