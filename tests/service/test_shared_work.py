"""What one hub does for all, with the stores that they share: schedules and webhooks."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from quarterdeck.domain.errors import StaleLease
from quarterdeck.fronts.schedules.scheduler import Scheduler
from quarterdeck.fronts.schedules.store import FILE as SCHEDULES
from quarterdeck.fronts.webhooks.outbox import FILE as WEBHOOKS
from quarterdeck.fronts.webhooks.outbox import Outbox, Waiting
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.ownership import hold_lease
from quarterdeck.protocol.schedules import FiringState
from quarterdeck.service.shared_files import Shared, SharedFiles
from quarterdeck.service.shared_rows import SharedRows
from support.guarded import Clock
from support.hub_machines import TestMachines, hub_with
from support.schedules import NINE, schedule

pytestmark = pytest.mark.anyio


class Side:
    """A hub with its schedules, in a folder of its own."""

    def __init__(self, journal: MemoryJournal, folder: Path, clock: Clock, hub: Hub) -> None:
        folder.mkdir()
        self.folder = folder
        self.journal = journal
        self.rows = SharedRows(journal, folder / SCHEDULES, duty="schedules")
        self.scheduler = Scheduler(hub, folder, clock=clock, mirror=self.rows)
        self.rows.changed = lambda _: self.scheduler.note_remote_change()
        files = (Shared(name="schedules.json", entries="schedules", united=True),)
        self.files = SharedFiles(journal, folder, files=files)
        self.files.taken = lambda _: self.scheduler.note_remote_change()

    async def look(self) -> None:
        """See what the other hub has changed."""
        await self.files.carry()
        await anyio.to_thread.run_sync(self.scheduler.look)
        await anyio.lowlevel.checkpoint()

    async def states(self) -> list[FiringState]:
        return [each.state for each in await self.scheduler.firings("nightly")]


@asynccontextmanager
async def sides(tmp_path: Path) -> AsyncIterator[tuple[Side, Side, TestMachines, Clock]]:
    """Two hubs' schedules; the sessions are started by one hub, which both have as theirs."""
    journal, clock = MemoryJournal(), Clock(NINE)
    hub, machines = hub_with(journal)
    ahead = Clock(NINE + 600)  # the clocks of two machines may differ
    a = Side(journal, tmp_path / "a", clock, hub)
    b = Side(journal.beside(), tmp_path / "b", ahead, hub)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(hub.run())
        for side in (a, b):
            await side.scheduler.open()
            stack.callback(side.scheduler.close)
        yield a, b, machines, clock


async def test_a_schedule_is_made_at_one_hub_run_at_another_and_started_by_the_one_on_duty(
    tmp_path: Path,
) -> None:
    async with sides(tmp_path) as (a, b, machines, _):
        lease = await a.journal.take_lease("schedules", "a", 3600)
        assert lease is not None
        await a.scheduler.add(schedule(max_running=5), "ada")
        await a.look()
        await b.look()
        assert [each.name for each in await b.scheduler.schedules()] == ["nightly"]
        # A person asks the other hub, twice: it is recorded once, and the hub on duty starts it.
        first = await b.scheduler.run_now("nightly", "bob", key="k")
        assert (await a.scheduler.run_now("nightly", "bob", key="k")).id == first.id
        assert machines.started == []
        await a.look()
        with hold_lease(lease):
            await a.scheduler.tick()
        assert len(machines.started) == 1
        await b.look()
        assert await b.states() == [FiringState.STARTED]
        # The hub on duty stood still; another one goes on, and starts nothing again.
        await a.journal.release_lease(lease)
        taken = await b.journal.take_lease("schedules", "b", 3600)
        assert taken is not None
        second = await b.scheduler.run_now("nightly", "bob", key="other")
        with hold_lease(taken):
            b.scheduler._acting = True
            await b.scheduler.tick()
        await a.look()
        third = await a.scheduler.run_now("nightly", "ada", key="third")
        begun = len(machines.started)
        with hold_lease(lease), pytest.raises(StaleLease):
            await a.scheduler.tick()
        assert len(machines.started) == begun == 2
        assert first.id != second.id != third.id
        # Its folder is lost: everything is at the other hub.
        a.scheduler.close()
        shutil.rmtree(a.folder)
        await b.look()
        with hold_lease(taken):
            await b.scheduler.tick()
        assert len(machines.started) == 3
        ids = {each.id for each in await b.scheduler.firings("nightly")}
        assert ids == {first.id, second.id, third.id}
        await b.scheduler.pause("nightly", "bob")
        await b.scheduler.remove("nightly", "bob")
        assert await b.scheduler.schedules() == ()


async def test_schedules_of_a_hub_that_was_alone_are_added_to_those_of_the_others(
    tmp_path: Path,
) -> None:
    async with sides(tmp_path) as (a, b, _, _):
        await a.scheduler.add(schedule("of-a"), "ada")
        await a.scheduler.add(schedule("both", prompt="of a"), "ada")
        await b.scheduler.add(schedule("of-b", every="7d"), "bob")
        await b.scheduler.add(schedule("both", prompt="of b"), "bob")
        for side in (a, b, a):
            await side.look()
        for side in (a, b):
            found = {each.name: each for each in await side.scheduler.schedules()}
            assert sorted(found) == ["both", "of-a", "of-b"]
            assert found["both"].prompt == "of a"
        assert b"of b" in (b.folder / "schedules.json.alone").read_bytes()


def waiting(id_: str, due: float = 1.0) -> Waiting:
    return Waiting(id=id_, body=b"{}", at=1.0, tries=0, due=due)


async def test_webhooks_that_wait_are_delivered_by_the_hub_that_goes_on(tmp_path: Path) -> None:
    journal = MemoryJournal()
    for name in "ab":
        (tmp_path / name).mkdir()
    mirrors = [
        SharedRows(each, tmp_path / name / WEBHOOKS, duty="webhooks")
        for name, each in (("a", journal), ("b", journal.beside()))
    ]
    thread = anyio.to_thread.run_sync
    lease = await journal.take_lease("webhooks", "a", 3600)
    assert lease is not None
    with hold_lease(lease):
        a = await thread(Outbox, tmp_path / "a", mirrors[0])
        assert await thread(a.begin, "hook", "e", 5) == 5
        await thread(a.put, "hook", "e", 6, waiting("e-6"))
        await thread(a.put, "hook", "e", 7, waiting("e-7"))
        await thread(a.reschedule, "hook", "e-6", 3, 99.0)
        await thread(a.remove, "hook", "e-7")
        await journal.release_lease(lease)
        taken = await journal.take_lease("webhooks", "b", 3600)
        assert taken is not None
        for change in (
            lambda: a.put("hook", "e", 8, waiting("e-8")),
            lambda: a.remove("hook", "e-6"),
            lambda: a.move("hook", "e", 100),
        ):
            with pytest.raises(StaleLease):
                await thread(change)
    with hold_lease(taken):
        b = await thread(Outbox, tmp_path / "b", mirrors[1])
        assert await thread(b.begin, "hook", "e", 50) == 7
        found = await thread(b.next, "hook")
        assert found == Waiting(id="e-6", body=b"{}", at=1.0, tries=3, due=99.0)
        await thread(b.keep_only, [])
        assert await thread(b.count, "hook") == 0
    a.close()
    b.close()
