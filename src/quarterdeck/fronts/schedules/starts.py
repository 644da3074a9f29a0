"""Starts that are not over: each is begun when it may, looked after, and ended.

Below `scheduler`, which records starts and calls `look`. Owns the order of the checks before a
session is started: access of the owner, limits, the machine.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError, QuarterdeckError
from quarterdeck.fronts.schedules import decide
from quarterdeck.fronts.schedules.jobs import Entry
from quarterdeck.fronts.schedules.sessions import (
    Ending,
    end_session,
    ending_of,
    machine_is_known,
    session_id,
    short,
    spec_of,
    start_session,
    zone_of,
)
from quarterdeck.fronts.schedules.store import Start, Store
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.schedules import Cause, Firing, FiringState, Job
from quarterdeck.protocol.sessions import SessionSpec

if TYPE_CHECKING:
    from quarterdeck.fronts.schedules.loops import Looping

log = logging.getLogger(__name__)

MACHINE_SECONDS = 600.0
"""How long a start waits for its machine."""
ENDED_SECONDS = 20.0
"""How long a session that ended too early may take to be resumed by the hub."""

_Answer = TypeVar("_Answer")

Resolve = Callable[[SessionSpec], SessionSpec]
Owners = Callable[[], Collection[str]]


class Starts:
    """The starts of all schedules that are not over. The caller lets in one task at a time."""

    def __init__(
        self,
        hub: HubApi,
        store: Callable[[], Store],
        *,
        resolve: Resolve,
        owners: Owners | None,
        clock: Callable[[], float],
        loops: Looping | None,
    ) -> None:
        self._hub = hub
        self._loops = loops
        self._store = store
        self._resolve = resolve
        self._owners = owners
        self._clock = clock
        self.open: dict[str, Start] = {}
        """By id, oldest first."""
        self._since: dict[str, float] = {}
        """Since when the machine of a start is missing, or its session has ended, by its id."""
        self.to_end: dict[str, str] = {}
        """Sessions whose CLI is to be ended, each with the owner of its schedule."""

    async def load(self) -> None:
        """Read them from the store."""
        found = await in_thread(self._store().open_starts)
        self.open = {start.firing.id: start for start in found}

    async def look(self, entries: Mapping[str, Entry]) -> None:
        """Look after each of them once: those that run first, because others may wait for them."""
        for state, step in ((FiringState.STARTED, self._check), (FiringState.WAITING, self._begin)):
            for start in list(self.open.values()):
                if start.firing.state is state:
                    await step(start, entries.get(start.firing.schedule))

    def states_of(self, name: str) -> list[FiringState]:
        """The states of a schedule's starts."""
        firings = (start.firing for start in self.open.values())
        return [firing.state for firing in firings if firing.schedule == name]

    async def load_of(self, job: Job) -> decide.Load:
        """What a job has under way."""
        states, today = self.states_of(job.name), 0
        if job.per_day is not None:
            since = _midnight(self._clock(), zone_of(job))
            firings = await in_thread(partial(self._store().since, job.name, since))
            today = sum(firing.started is not None for firing in firings)
        return decide.Load(
            running=states.count(FiringState.STARTED),
            waiting=states.count(FiringState.WAITING),
            today=today,
        )

    async def end_sessions(self) -> None:
        """End the CLIs that are done, all at once: one that does not answer takes seconds."""
        ended, self.to_end = self.to_end, {}
        async with anyio.create_task_group() as tasks:
            for session, owner in ended.items():
                tasks.start_soon(end_session, self._hub, session, owner)

    # --- starting ------------------------------------------------------------------------------

    async def _begin(self, start: Start, entry: Entry | None) -> None:
        firing = start.firing
        if entry is None or (entry.paused and firing.cause is not Cause.PERSON):
            return
        if self._is_barred(entry):
            await self._end(entry, firing, FiringState.FAILED, decide.NO_ACCESS)
            return
        job = entry.job
        load = await self.load_of(job)
        if refused := decide.refusal(job, replace(load, waiting=0), firing.cause):
            await self._end(entry, firing, FiringState.SKIPPED, refused)
            return
        if load.running >= job.max_running:
            return
        try:
            spec = self._resolve(spec_of(job, firing.planned / 1000))
            if not await machine_is_known(self._hub, spec.machine):
                if self._waited_seconds(firing.id) > MACHINE_SECONDS:
                    await self._end(entry, firing, FiringState.FAILED, decide.NO_MACHINE)
                return
            await in_thread(self._store().confirm)  # a hub that stood still starts nothing
            begun = await self._start(entry, spec, start)
        except JournalError:
            raise
        except QuarterdeckError as error:
            if self._hub.view(session_id(firing)) is not None:
                firing = replace(firing, session=session_id(firing))
            detail = short(str(error))
            await self._end(entry, firing, FiringState.FAILED, decide.NOT_STARTED, detail)
            return
        self._since.pop(firing.id, None)
        what = "session" if begun.loop is None else "loop"
        id_ = begun.session or begun.loop
        log.info("schedule %s: started the %s %s for %s", job.name, what, id_, entry.owner)
        now = int(self._clock() * 1000)
        await self._put(entry, replace(begun, state=FiringState.STARTED, started=now))

    async def _start(self, entry: Entry, spec: SessionSpec, start: Start) -> Firing:
        """Start the session or the loop; gives the start with its id."""
        job, firing, prompt, owner = entry.job, start.firing, start.prompt or "", entry.owner
        if job.loop is None:
            session = await start_session(self._hub, job, firing, prompt, owner)
            return replace(firing, session=session)
        from quarterdeck.fronts.schedules.loops import start_loop  # few hubs need it

        loop = await start_loop(self._loops, job, job.loop, spec, firing, prompt, owner)
        return replace(firing, loop=loop)

    async def _ending(self, firing: Firing) -> Ending | None:
        if firing.loop is None:
            return await ending_of(self._hub, firing)
        from quarterdeck.fronts.schedules.loops import loop_ending

        return await loop_ending(self._loops, firing.loop)

    def _is_barred(self, entry: Entry) -> bool:
        """Whether its owner, who made it over the API, may not start sessions any more."""
        if entry.source == "config" or self._owners is None:
            return False
        return entry.owner not in self._owners()

    # --- what became of it -----------------------------------------------------------------------

    async def _check(self, start: Start, entry: Entry | None) -> None:
        firing = start.firing
        ending = await self._ending(firing)
        if ending is not None and ending.reason == decide.ENDED:
            if self._waited_seconds(firing.id) < ENDED_SECONDS:
                return
        else:
            self._since.pop(firing.id, None)
        if ending is not None:
            await self._finish(firing, entry, ending)
        elif entry is not None and firing.loop is None and self._is_too_long(firing, entry.job):
            self.to_end[session_id(firing)] = entry.owner
            await self._end(entry, firing, FiringState.FAILED, decide.TIME_LIMIT)

    def _is_too_long(self, firing: Firing, job: Job) -> bool:
        began = (firing.started or firing.made) / 1000
        return job.max_minutes is not None and self._clock() - began > job.max_minutes * 60

    async def _finish(self, firing: Firing, entry: Entry | None, ending: Ending) -> None:
        if ending.running and entry is not None and not entry.job.keep_running:
            self.to_end[session_id(firing)] = entry.owner
        state = FiringState.FAILED if ending.reason else FiringState.DONE
        ended = replace(firing, cost_usd=ending.cost_usd)
        await self._end(entry, ended, state, ending.reason, ending.detail)

    async def _end(
        self,
        entry: Entry | None,
        firing: Firing,
        state: FiringState,
        reason: str,
        detail: str = "",
    ) -> None:
        log.info("schedule %s: %s %s %s", firing.schedule, state.value, reason, detail)
        ended = int(self._clock() * 1000)
        over = replace(firing, state=state, reason=reason, detail=detail, ended=ended)
        await self._put(entry, over)

    async def _put(self, entry: Entry | None, firing: Firing) -> None:
        await in_thread(partial(self._store().change, firing))
        if firing.state is FiringState.STARTED:
            self.open[firing.id] = Start(firing=firing, prompt=None)
        else:
            self.open.pop(firing.id, None)
            self._since.pop(firing.id, None)
        if entry is not None and entry.last is not None and entry.last.id == firing.id:
            entry.last = firing

    def _waited_seconds(self, id_: str) -> float:
        now = self._clock()
        return now - self._since.setdefault(id_, now)


def _midnight(now: float, zone: str) -> float:
    day = datetime.fromtimestamp(now, ZoneInfo(zone))
    return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


async def in_thread(work: Callable[[], _Answer]) -> _Answer:
    """Run it in a thread, to its end, so that its result is always known.

    Raises `JournalError` if the store cannot be read or written.
    """
    try:
        return await anyio.to_thread.run_sync(work)
    except sqlite3.Error as error:
        raise JournalError(f"the schedules cannot be read or written: {error}") from error
