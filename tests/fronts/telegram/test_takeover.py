"""Several hubs have one bot: one of them runs the front, and another one goes on with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from quarterdeck.fronts.telegram.front import RunningFront, run_front
from quarterdeck.fronts.telegram.jobs import Health
from quarterdeck.journal.base import Lease
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.ownership import hold_lease
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service.shared_rows import LeasedRows
from support.bounds import SECONDS
from support.telegram_house import TelegramHouse
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def front(house: TelegramHouse, journal: MemoryJournal, state: Path, lease: Lease) -> None:
    """The front at a hub with a data folder of its own."""
    house.running = running = RunningFront(health=Health())
    shared = LeasedRows(journal, state, "telegram")
    with hold_lease(lease):
        settings = house.front(state)
        await run_front(house.where, settings, clock=house.clock, running=running, shared=shared)


async def test_another_hub_goes_on_with_the_bot_and_the_one_that_stood_still_says_nothing(
    bare_house: TelegramHouse, tmp_path: Path
) -> None:
    house, journal = bare_house, MemoryJournal()
    here, there = tmp_path / "a" / "telegram.db", tmp_path / "b" / "telegram.db"
    for folder in (here.parent, there.parent):
        folder.mkdir()
    first = await journal.take_lease("telegram", "a", 3600)
    assert first is not None
    async with background_tasks() as at_a:
        at_a.start_soon(front, house, journal, here, first)
        guest = await house.person()
        guest.type("hello")
        await guest.hears("hello")
        # Its hub stands still, and loses the lease. What it then does is told to nobody.
        await journal.release_lease(first)
        second = await journal.take_lease("telegram", "b", 3600)
        assert second is not None
        stale = house.running
        before = len(house.sim.from_bot(guest.user))
        guest.type("/ping")
        await until(lambda: "belongs to hub b" in stale.health.poll_failure)
        assert len(house.sim.from_bot(guest.user)) == before
        at_a.cancel_scope.cancel()
    shutil.rmtree(here.parent)
    async with background_tasks() as at_b:
        at_b.start_soon(front, house, journal.beside(), there, second)
        # The update that the first hub got, and could not keep, comes again; who it is, is known.
        await guest.hears("pong")
        guest.type("again")
        await guest.hears("again")
        texts = [one.shown for one in house.sim.from_bot(guest.user)]
        assert sum("pong" in text.lower() for text in texts) == 1
        await house.clear()
        at_b.cancel_scope.cancel()
    # The same hub starts again: what the store has is what it knows.
    rows = await journal.shared_values("rows/telegram.db")
    assert any(name.startswith("people.") for name in rows)
    with anyio.fail_after(SECONDS):
        async with background_tasks() as again:
            again.start_soon(front, house, journal.beside(), there, second)
            guest.type("once more")
            await guest.hears("once more")
            await house.clear()
            again.cancel_scope.cancel()
