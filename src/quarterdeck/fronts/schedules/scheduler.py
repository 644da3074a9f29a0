"""The scheduler: decides what is due, records it, and starts it through the hub.

One task looks at all schedules: each second while something is under way, else when the next time
is due. `plan` and `decide` say what is to happen, `store` remembers it, and `sessions` talks to the
hub. A person's requests (`add`, `pause`, `run_now`) and inbound webhooks (`trigger`) come in by the
methods of `Scheduler`; who may do so is checked by those who call them.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec.structs import replace

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    NotFound,
    StaleLease,
    UsageError,
)
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.schedules import decide
from quarterdeck.fronts.schedules.definitions import Definitions
from quarterdeck.fronts.schedules.jobs import Entry, checked_schedule, entries_of, shape_of
from quarterdeck.fronts.schedules.plan import due_between
from quarterdeck.fronts.schedules.prompts import prompt_of, with_request
from quarterdeck.fronts.schedules.sessions import firing_id, spec_of, zone_of
from quarterdeck.fronts.schedules.starts import Owners, Resolve, Starts, in_thread
from quarterdeck.fronts.schedules.store import Start, State, Store
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.schedules import (
    Cause,
    Firing,
    FiringState,
    InboundHook,
    Job,
    Schedule,
    ScheduleShape,
)
from quarterdeck.runtime.duties import Duty, alone
from quarterdeck.runtime.shared_tables import Mirror
from quarterdeck.runtime.tasks import background_tasks

if TYPE_CHECKING:
    from quarterdeck.fronts.schedules.loops import Looping

log = logging.getLogger(__name__)

BUSY_SECONDS = 1.0
"""How often starts that are under way are looked at."""
IDLE_SECONDS = 30.0
"""The longest sleep: the clock of the machine may be set."""
PAUSE_SECONDS = 5.0
"""After an internal failure (a full disk, an unreadable journal)."""
MOST_SCHEDULES = 500
"""That people can make over the API."""


class Scheduler:
    """The schedules of a hub. `running` opens the store; before, nothing is there."""

    def __init__(
        self,
        hub: HubApi,
        folder: Path,
        configured: Sequence[Job] = (),
        *,
        resolve: Resolve = lambda spec: spec,
        owners: Owners | None = None,
        loops: Looping | None = None,
        clock: Callable[[], float] = time.time,
        mirror: Mirror | None = None,
    ) -> None:
        """`configured` are the jobs of the configuration. Raises `UsageError` for invalid ones.

        `resolve` gives the spec with its project's defaults, and raises what is wrong with it.

        `owners` are the people who may start sessions now; a schedule of another person that was
        made over the API starts nothing. None: everybody may.

        `mirror`: several hubs have the same schedules, and one of them starts what is due.
        """
        self._mirror = mirror
        self._acting = mirror is None
        """Whether this hub starts what is due. A person can ask any hub."""
        self._hub = hub
        self._folder = folder
        self._resolve = resolve
        self._clock = clock
        self._lock = anyio.Lock()
        self._wake = anyio.Event()
        self.definitions = self._definitions = Definitions(folder)
        self._store: Store | None = None
        self._configured = tuple(configured)
        entries_of(self._configured, (), {}, clock())
        self._entries: dict[str, Entry] = {}
        self._stale = True
        """The entries must be made again, because the configuration has changed."""
        self._starts = Starts(
            hub, self._need, resolve=resolve, owners=owners, clock=clock, loops=loops
        )

    # --- life ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def run(self, duty: Duty = alone) -> AsyncIterator[None]:
        """Start what is due while the block runs, and while it is this hub's turn."""
        await self.open()
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(duty, "schedules", self._take_turn)
                yield
        finally:
            with anyio.CancelScope(shield=True):  # a thread may be using the store
                await anyio.to_thread.run_sync(self.close)

    async def _take_turn(self) -> None:
        before, self._acting, self._stale = self._acting, True, True
        try:
            await self._keep()
        finally:
            self._acting = before

    async def open(self) -> None:
        """Open the store. A store that cannot be opened is logged, and there are no schedules."""
        try:
            self._store = await anyio.to_thread.run_sync(Store, self._folder, self._mirror)
        except (OSError, sqlite3.Error) as error:
            log.error("there are no schedules: %s: %s", self._folder, error)
        self._stale = True

    def close(self) -> None:
        """Close the store. What is under way is looked at by the next hub."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def look(self) -> None:
        """See what other hubs have changed. Blocking."""
        if (store := self._store) is not None:
            store.look()

    def note_remote_change(self) -> None:
        """Another hub has changed schedules, or has recorded a start."""
        self._stale = True
        self._wake.set()

    def change(self, configured: Sequence[Job]) -> None:
        """Have these jobs of the configuration from now on. Raises `UsageError`."""
        configured = tuple(configured)
        entries_of(configured, (), {}, self._clock())
        if configured != self._configured:
            self._configured = configured
            self._stale = True
            self._wake.set()

    async def _keep(self) -> None:
        while True:
            self._wake = anyio.Event()
            pause = PAUSE_SECONDS
            try:
                pause = await self.tick()
                await self.end_sessions()
            except StaleLease:
                raise  # another hub starts what is due
            except (JournalError, OSError) as error:
                log.error("schedules: %s", error)
            except Exception:  # whatever happens to a schedule, the hub goes on
                log.exception("schedules: an unexpected failure; they are looked at again")
            with anyio.move_on_after(pause):
                await self._wake.wait()

    async def tick(self) -> float:
        """Look at everything once; gives the seconds until the next look."""
        async with self._lock:
            if self._store is None:
                return IDLE_SECONDS
            if self._stale:
                await self._load()
            for entry in list(self._entries.values()):
                await self._plan(entry)
            await self._starts.look(self._entries)
            if self._starts.open:
                return BUSY_SECONDS
            now = self._clock()
            times = [entry.next_time(now) for entry in self._entries.values()]
            waits = [at - now for at in times if at is not None]
            return max(0.05, min([IDLE_SECONDS, *waits]))

    async def end_sessions(self) -> None:
        """End the CLIs of sessions whose work is done. Others may use the scheduler meanwhile."""
        await self._starts.end_sessions()

    async def _load(self) -> None:
        """Make the entries anew, from the configuration and the store."""
        store, now = self._need(), self._clock()
        made: list[Schedule] | None = None
        try:
            made = await in_thread(self._definitions.schedules)
        except JournalError as error:  # those of the configuration go on
            log.error("schedules: %s", error)
        states = await in_thread(store.states)
        self._entries = entries_of(self._configured, made or (), states, now)
        self._stale = False
        for name, entry in self._entries.items():
            if states.get(name) != entry.state:
                await in_thread(partial(store.put_state, name, entry.state))
        if made is not None and self._acting:
            await in_thread(partial(store.keep_only, self._entries.keys()))
        await self._starts.load()

    # --- what is due ---------------------------------------------------------------------------

    async def _plan(self, entry: Entry) -> None:
        """Record the planned times that are due."""
        now, state, job = self._clock(), entry.state, entry.job
        if entry.plan is None or entry.paused or not isinstance(job, Schedule):
            return
        if state.cursor > now + decide.ON_TIME:
            # The clock was set back. Times that were taken already have their ids.
            log.warning("schedule %s: the clock was set back", job.name)
            entry.state = state = replace(state, cursor=now)
        most = decide.most_due(job.catch_up, job.catch_up_max)
        times = due_between(entry.plan, state.cursor, now, state.anchor, most)
        if not times:
            return
        moved = replace(state, cursor=times[-1])
        starts = [
            self._new(job, each.time, Cause.TIME, "", "", reason=each.reason)
            for each in decide.caught_up(times, now, job.catch_up, job.catch_up_max)
        ]
        await self._record(entry, moved, starts)

    def _new(
        self,
        job: Job,
        planned: float,
        cause: Cause,
        key: str,
        by: str,
        *,
        body: bytes = b"",
        reason: str = "",
    ) -> Start:
        state = FiringState.SKIPPED if reason else FiringState.WAITING
        now = self._clock()
        prompt = prompt_of(job.prompt, name=job.name, planned=planned, zone=zone_of(job))
        return Start(
            firing=Firing(
                id=firing_id(job.name, key or f"time {int(planned)}"),
                schedule=job.name,
                planned=int(planned * 1000),
                made=int(now * 1000),
                cause=cause,
                by=by,
                state=state,
                reason=reason,
                detail="",
                session=None,
                loop=None,
                started=None,
                ended=int(now * 1000) if reason else None,
                cost_usd=None,
            ),
            prompt=None if reason else with_request(prompt, job.name, body),
        )

    async def _record(self, entry: Entry, state: State | None, starts: list[Start]) -> list[Start]:
        store = self._need()
        new = await in_thread(partial(store.record, entry.job.name, state, starts))
        if state is not None:
            entry.state = state
        for start in new:
            firing = start.firing
            entry.last = firing
            if firing.state is FiringState.WAITING:
                self._starts.open[firing.id] = start
            else:
                log.info("schedule %s: skipped: %s", firing.schedule, firing.reason)
        return new

    # --- for people and for webhooks -------------------------------------------------------------

    async def schedules(self) -> tuple[ScheduleShape, ...]:
        """All schedules and inbound webhooks, by name."""
        async with self._lock:
            await self._fresh()
            shapes = [await self._shape(self._entries[name]) for name in sorted(self._entries)]
            return tuple(shapes)

    async def schedule(self, name: str) -> ScheduleShape:
        """One of them. Raises `NotFound`."""
        async with self._lock:
            return await self._shape(await self._find(name))

    async def firings(
        self, name: str, *, before: str | None = None, limit: int = 50
    ) -> tuple[Firing, ...]:
        """The starts of a schedule, newest first. Raises `NotFound`."""
        async with self._lock:
            await self._find(name)
            store = self._need()
            found = await in_thread(partial(store.firings, name, before=before, limit=limit))
            return tuple(found)

    async def add(self, schedule: Schedule, by: str) -> ScheduleShape:
        """Add a schedule of a person. The same one again changes nothing.

        Raises `UsageError`, `NotFound` for a project that is none, and `Conflict`.
        """
        if schedule.owner is not None:
            raise UsageError("owner: a schedule belongs to the person who makes it")
        schedule = replace(schedule, owner=by)
        checked_schedule(schedule, self._clock())
        self._resolve(spec_of(schedule, self._clock()))
        async with self._lock:
            await self._fresh()
            known = self._entries.get(schedule.name)
            if known is not None:
                if replace(known.job, paused=schedule.paused) == schedule:
                    return await self._shape(known)
                raise Conflict("schedule_exists", f"there is a schedule {schedule.name!r} already")
            if sum(entry.source == "api" for entry in self._entries.values()) >= MOST_SCHEDULES:
                raise Conflict("too_many_schedules", f"there are {MOST_SCHEDULES} schedules")
            await in_thread(partial(self._definitions.put, schedule))
            await self._load()
            self._wake.set()
            log.info("schedule %s: added by %s", schedule.name, by)
            return await self._shape(self._entries[schedule.name])

    async def remove(self, name: str, by: str) -> None:
        """Remove a schedule with its history. Its sessions stay. Raises `NotFound`, `Conflict`."""
        async with self._lock:
            if (await self._find(name)).source == "config":
                raise Conflict(
                    "in_configuration",
                    f"the schedule {name!r} is in the configuration: remove it there, or pause it",
                )
            await in_thread(partial(self._definitions.remove, name))
            await in_thread(partial(self._need().remove, name))
            await self._load()
            log.info("schedule %s: removed by %s", name, by)

    async def pause(self, name: str, by: str, *, paused: bool = True) -> ScheduleShape:
        """Pause a schedule, or resume it. Times that pass while it is paused are not caught up.

        Raises `NotFound`.
        """
        async with self._lock:
            entry = await self._find(name)
            if entry.paused != paused:
                state = replace(entry.state, paused=paused, paused_by=by, cursor=self._clock())
                if isinstance(entry.job, Schedule) and entry.source == "api":
                    # In its definition, too: a restored backup must not start what was paused.
                    changed = replace(entry.job, paused=paused)
                    await in_thread(partial(self._definitions.put, changed))
                    entry.job, state = changed, replace(state, written_paused=paused)
                await in_thread(partial(self._need().put_state, name, state))
                entry.state = state
                self._wake.set()
                log.info("schedule %s: %s by %s", name, "paused" if paused else "resumed", by)
            return await self._shape(entry)

    async def run_now(self, name: str, by: str, *, key: str | None = None) -> Firing:
        """Start a session of a schedule now, also of one that is paused.

        The same key again gives the same start. Raises `NotFound`, `Conflict`.
        """
        async with self._lock:
            entry = await self._find(name)
            if isinstance(entry.job, InboundHook):
                raise Conflict("needs_request", "only a request can start this one")
            return (await self._ask(entry, Cause.PERSON, key or new_id(), by, b""))[0]

    async def trigger(self, name: str, key: str, body: bytes, by: str) -> tuple[Firing, bool]:
        """Start a session for a request; whether it is new. Raises `NotFound`, `Conflict`.

        The same key again gives the same start, and no other.
        """
        async with self._lock:
            entry = await self._find(name)
            if entry.paused:
                raise Conflict("paused", f"{name} is paused")
            return await self._ask(entry, Cause.REQUEST, key, by, body)

    async def _ask(
        self, entry: Entry, cause: Cause, key: str, by: str, body: bytes
    ) -> tuple[Firing, bool]:
        job, store = entry.job, self._need()
        # The key alone makes the id: a request that comes again a minute later has the same.
        key = f"{cause.value} {key}"
        known = await in_thread(partial(store.find, firing_id(job.name, key)))
        if known is not None:
            return known, False
        if refused := decide.refusal(job, await self._starts.load_of(job), cause):
            raise Conflict(refused, f"nothing is started: {refused}")
        # A large body takes a while to make a prompt of.
        make = partial(self._new, job, self._clock(), cause, key, by, body=body)
        start = await in_thread(make)
        await self._record(entry, None, [start])
        self._wake.set()
        return start.firing, True

    # --- inside ----------------------------------------------------------------------------------

    async def _shape(self, entry: Entry) -> ScheduleShape:
        if entry.last is None:
            name = entry.job.name
            last = await in_thread(partial(self._need().firings, name, limit=1))
            entry.last = last[0] if last else None
        return shape_of(entry, self._clock(), self._starts.states_of(entry.job.name))

    async def _find(self, name: str) -> Entry:
        await self._fresh()
        entry = self._entries.get(name)
        if entry is None:
            raise NotFound("schedule", name)
        return entry

    async def _fresh(self) -> None:
        self._need()
        if self._stale:
            await self._load()

    def _need(self) -> Store:
        if self._store is None:
            raise JournalError("the schedules cannot be read or written")
        return self._store
