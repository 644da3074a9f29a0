"""A schedule of faults in a world of two hubs: what is killed, cut and stopped there besides.

In the end each follower must have been given what the journal has, once and in order.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.to_thread

from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.testing.postgres import PostgresServer
from support.bounds import SECONDS
from support.fault_schedule import Schedule
from support.fault_world import HubGone, Refusal
from support.fleet_world import MACHINES, FleetWorld

ROUTING = frozenset({"owner_away", "moving", "outcome_unknown"})
"""What a hub says of a session that it could not reach: the next attempt may."""
AGAIN = frozenset({"JournalError", "NotFound", "StaleFence", "StaleHead"})


class FleetSchedule(Schedule):
    """A seed in a world of two hubs."""

    def __init__(
        self, world: FleetWorld, seed: int, database: PostgresServer | None = None
    ) -> None:
        self.database = database
        super().__init__(world, seed)  # type: ignore[arg-type]  # a World as far as it goes
        self.fleet = world
        self.told: list[str] = []
        """What the hubs answered, for whoever has to find out why it failed."""
        world.chance = random.Random(seed)

    def _actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        actions = {**super()._actions(), self._kill_both: 1, self._pause: 3}
        if self.database is not None:
            del actions[self._fill_disk]  # its disk is not that of a hub
            actions |= {self._kill_database: 1, self._cut_database: 2, self._stall_database: 1}
        return actions

    # --- what people do ----------------------------------------------------------------------

    async def _surely(self, command: AnyCommand) -> Outcome | None:
        why: Exception | None = None
        with anyio.move_on_after(SECONDS):
            while True:
                try:
                    outcome = await self.world.submit(command)
                except HubGone as gone:
                    why = gone
                except Refusal as refusal:
                    self.told.append(f"{type(command).__name__}: {refusal}")
                    if refusal.kind not in AGAIN and refusal.code not in ROUTING:
                        return None
                    why = refusal
                else:
                    self.told.append(f"{type(command).__name__}: {outcome}")
                    return outcome
                await anyio.sleep(0.05)
        raise AssertionError(f"nobody did {command}: {why!r}")

    # --- what goes wrong ---------------------------------------------------------------------

    async def _kill_hub(self) -> None:
        side = self.chance.choice(self.fleet.sides)
        side.go_on()
        await side.kill_hub()
        await anyio.sleep(self.chance.random() * 0.5)
        await side.start_hub()

    async def _kill_both(self) -> None:
        for side in self.fleet.sides:
            side.go_on()
            await side.kill_hub()
        for side in self.fleet.sides:
            await side.start_hub()

    async def _pause(self) -> None:
        """A hub stands still; its machines go to the other one; it wakes up."""
        side = self.chance.choice(self.fleet.sides)
        seconds = self.chance.random() * 1.2
        side.pause()
        await anyio.sleep(seconds)
        side.go_on()

    async def _cut_at_any_byte(self) -> None:
        link = self.world.link
        link.chance = random.Random(self.chance.random())
        link.cut()
        await anyio.sleep(self.chance.random() * 0.5)
        link.heal()

    async def _stall(self) -> None:
        link = self.world.link
        link.stall()
        await anyio.sleep(self.chance.random() * 0.3)
        if self.chance.random() < 0.5:
            link.cut()
        link.heal()

    async def _kill_database(self) -> None:
        database = self.database
        assert database is not None
        await anyio.to_thread.run_sync(database.kill)
        await anyio.sleep(self.chance.random() * 0.3)
        await anyio.to_thread.run_sync(database.start)

    async def _cut_database(self) -> None:
        side = self.chance.choice(self.fleet.sides)
        await anyio.to_thread.run_sync(side.cut_database)

    async def _stall_database(self) -> None:
        side = self.chance.choice(self.fleet.sides)
        pids = await anyio.to_thread.run_sync(side.stall_database)
        try:
            await anyio.sleep(self.chance.random() * 0.5)
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        if self.chance.random() < 0.5:
            await anyio.to_thread.run_sync(side.cut_database)

    async def _kill_runner(self) -> None:
        name = self.chance.choice(MACHINES)
        await self.fleet.kill_runner(name)
        for session in self.sessions:
            try:
                view = await self.world.view(session)
            except (HubGone, Refusal):
                continue
            if view.run and view.spec.machine == name:
                self.runner_killed.add(view.run)
        await self.fleet.start_runner(name)

    # --- the end -----------------------------------------------------------------------------

    async def _heal(self) -> None:
        for side in self.fleet.sides:
            side.go_on()
            for network in side.networks:
                network.heal()

    async def tell(self, file: anyio.Path) -> None:
        """Write down what there is of it; it is kept with the logs of the hubs and runners."""
        lines = [f"{name}: {child and child.pid}" for name, child in self.fleet.runners.items()]
        lines += self.told
        for name in self.sessions:
            with suppress(HubGone, Refusal):
                lines.append(f"{await self.world.view(name)}"[:5000])
                for row, _ in await self.world.events(name):
                    lines.append(f"{row.seq} {row.position} {row.at} {bytes(row.event)[:300]!r}")
        await file.write_text("\n".join(lines))

    async def _settle(self) -> list[str]:
        found = await super()._settle()
        if found:
            return found
        rows = {name: await self.fleet.events(name) for name in self.sessions}
        last = max(row.position for of_one in rows.values() for row, _ in of_one)
        for number, follower in enumerate(self.fleet.followers):
            await follower.reach(last)
            found += follower.wrong
            for name, of_one in rows.items():
                if follower.seen.get(name) != [(row.seq, row.position) for row, _ in of_one]:
                    found.append(f"{name}: follower {number} has seen something else")
        return found
