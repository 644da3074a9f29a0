"""A scheduler over a real hub whose machines and clock the test plays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from quarterdeck.fronts.schedules.scheduler import Scheduler
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.schedules import Firing, Job, Schedule
from support import lines
from support.bounds import SECONDS
from support.guarded import Clock
from support.hub_machines import TestMachines, TestRun, hub_with

NINE = 1_799_571_600.0
"""Sunday, 2027-01-10T09:00:00Z."""


def schedule(name: str = "nightly", **more: Any) -> Schedule:
    """A schedule of every hour, unless it is said otherwise."""
    if not {"cron", "every", "at"} & more.keys():
        more["cron"] = "0 * * * *"
    return Schedule(**{"name": name, "prompt": "Run the tests.", "directory": "/work"} | more)


class Planned:
    """A hub with schedules. `restart` is what a kill and a new start of the hub's process are."""

    def __init__(self, folder: Path, clock: Clock, owners: list[str]) -> None:
        self.folder = folder
        self.clock = clock
        self.owners = owners
        self.journal = MemoryJournal()
        self.hub: Hub
        self.machines: TestMachines
        self.scheduler: Scheduler

    async def have(self, *jobs: Job) -> None:
        """Have these in the configuration; the scheduler looks."""
        self.scheduler.change(jobs)
        await self.scheduler.tick()

    async def at(self, seconds: float) -> None:
        """Time goes on, and the scheduler looks."""
        self.clock.move(seconds)
        await self.scheduler.tick()

    async def firings(self, name: str = "nightly") -> list[Firing]:
        """The starts, oldest first."""
        return list(reversed(await self.scheduler.firings(name, limit=500)))

    async def story(self, name: str = "nightly") -> list[tuple[str, str]]:
        """The state and the reason of each start, oldest first."""
        return [(each.state.value, each.reason) for each in await self.firings(name)]

    @property
    def prompts(self) -> list[str]:
        """The specs' names of all sessions that were started."""
        return [spec.name or "" for spec, _ in self.machines.started]

    async def work(self, run: TestRun | None = None, **result: Any) -> None:
        """The newest CLI does its work to the end."""
        run = run or self.machines.runs[-1]
        await run.greet()
        uuid = await run.take_prompt()
        await run.say(lines.assistant("ok", f"a-{uuid}"), lines.result(f"r-{uuid}", **result))

    async def end_sessions(self, run: TestRun) -> None:
        """The scheduler ends the sessions whose work is done; the CLI of this one answers."""
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.scheduler.end_sessions)
                while not run.stops:
                    await run.wait_for_write()
                    for request in run.read():
                        await run.say(lines.success_answer(request["request_id"]))
                    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running_hub(planned: Planned, **more: Any) -> AsyncIterator[Planned]:
    """A hub on the journal of `planned`, with a scheduler that ticks when the test says so."""
    planned.hub, planned.machines = hub_with(planned.journal)

    def owners() -> Collection[str]:
        return planned.owners

    planned.scheduler = Scheduler(
        planned.hub, planned.folder, clock=planned.clock, owners=owners, **more
    )
    async with planned.hub.run():
        await planned.scheduler.open()
        try:
            yield planned
        finally:
            planned.scheduler.close()
