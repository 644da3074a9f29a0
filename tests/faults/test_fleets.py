"""Random schedules with two hubs on one journal: kills, cuts, stalls, and hubs that stand still.

`QUARTERDECK_FLEET_SEEDS=7,12-20` plays those seeds, `QUARTERDECK_FLEET_COUNT=2000` so many.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from quarterdeck.journal import Journal, SqliteJournal
from quarterdeck.journal.engines import open_journal
from quarterdeck.journal.views import fold_all
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.testing.postgres import PostgresServer
from support.bounds import SECONDS
from support.fault_duties import has_begun, undelivered, wrong_with
from support.fault_nursery import Nursery
from support.fleet_schedule import FleetSchedule
from support.fleet_world import FleetWorld, fleet_world
from support.processes import Processes
from support.receiver import receiving

pytestmark = pytest.mark.anyio

IN_A_WORLD = 20
COUNT = 200
WITH_DUTIES = 20
"""The seeds up to this one are played with hubs that have a schedule and a webhook, too."""
IN_A_FILE = 10
"""Seeds with a journal in a file, which two hubs of one machine may share."""


def worlds(count: int) -> list[list[int]]:
    """The seeds to play, a world's at a time."""
    if chosen := os.environ.get("QUARTERDECK_FLEET_SEEDS"):
        seeds = list(_numbers(chosen))
    else:
        seeds = list(range(1, int(os.environ.get("QUARTERDECK_FLEET_COUNT", count)) + 1))
    return [seeds[at : at + IN_A_WORLD] for at in range(0, len(seeds), IN_A_WORLD)]


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _name(seeds: list[int]) -> str:
    return f"seeds-{seeds[0]}-{seeds[-1]}"


@pytest.mark.no_cover
@pytest.mark.parametrize("seeds", worlds(COUNT), ids=_name)
async def test_two_hubs_lose_double_and_disorder_nothing_whatever_is_killed_cut_or_stopped(
    seeds: list[int],
    tmp_path: Path,
    nursery: Nursery,
    processes: Processes,
    postgres: PostgresServer,
    postgres_url: str,
) -> None:
    if seeds[0] > WITH_DUTIES:
        await play(seeds, tmp_path, nursery, processes, postgres_url, postgres)
    else:
        await play_with_duties(seeds, tmp_path, nursery, processes, postgres_url, postgres)
    async with await open_journal(postgres_url) as journal:
        await views_are_what_the_events_come_to(journal)
        if seeds[0] <= WITH_DUTIES:
            assert await wrong_with(journal, tmp_path / "seen") == []


@pytest.mark.no_cover
@pytest.mark.parametrize("seeds", worlds(IN_A_FILE), ids=_name)
async def test_the_same_holds_for_hubs_that_share_a_file(
    seeds: list[int], tmp_path: Path, nursery: Nursery, processes: Processes
) -> None:
    place = tmp_path / "journal.db"
    await play(seeds, tmp_path, nursery, processes, str(place))
    async with await SqliteJournal.open(place) as journal:
        await views_are_what_the_events_come_to(journal)


async def play_with_duties(
    seeds: list[int],
    folder: Path,
    nursery: Nursery,
    processes: Processes,
    place: str,
    database: PostgresServer,
) -> None:
    """Play schedules in a world whose hubs also have a schedule and a webhook."""
    async with receiving() as receiver, await open_journal(place) as journal:

        def came() -> set[str]:
            return {delivery.id for delivery in receiver.came}

        async with fleet_world(folder, nursery, processes, place, receiver.url) as one:
            with anyio.fail_after(SECONDS):
                while not await has_begun(journal):  # noqa: ASYNC110 - a hub makes it true
                    await anyio.sleep(0.02)
            await play_in(one, seeds, folder, database)
            with anyio.move_on_after(SECONDS):
                while await undelivered(journal, came()):  # noqa: ASYNC110 - a hub makes it true
                    await anyio.sleep(0.1)
            assert await undelivered(journal, came()) == []
        assert receiver.came


async def play(
    seeds: list[int],
    folder: Path,
    nursery: Nursery,
    processes: Processes,
    place: str,
    database: PostgresServer | None = None,
) -> None:
    """Play schedules in one world."""
    async with fleet_world(folder, nursery, processes, place) as one:
        await play_in(one, seeds, folder, database)


async def play_in(
    world: FleetWorld, seeds: list[int], folder: Path, database: PostgresServer | None
) -> None:
    """Play schedules, one after the other."""
    for seed in seeds:
        schedule = FleetSchedule(world, seed, database)
        found = await schedule.play()
        sys.stdout.write(f"seed {seed}: {' '.join(schedule.done)}\n")
        if found:
            await schedule.tell(anyio.Path(folder) / f"seed-{seed}.log")
        assert not found, f"QUARTERDECK_FLEET_SEEDS={seed}: {schedule.done}: {found}"


async def views_are_what_the_events_come_to(journal: Journal) -> None:
    """Fold every session from its first event."""
    views = await journal.summaries(limit=1000, archived=None)
    assert views
    for view in views:
        events: list[Stored] = []
        while page := await journal.read(view.session, after=len(events)):
            events += page
        assert fold_all(None, events) == view
    assert await journal.open_asks() == []
