"""Random schedules of kills, cuts, stalls, full disks and rubbish: the journal loses nothing.

`QUARTERDECK_FAULT_SEEDS=7,12` plays those seeds, `QUARTERDECK_FAULT_COUNT=1000` so many, and
`QUARTERDECK_FAULT_SANDBOXED=100` so many with CLIs in a sandbox.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from quarterdeck.journal import SqliteJournal
from quarterdeck.journal.views import fold_all
from quarterdeck.protocol.events import SandboxStarted
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.sandbox import Kind
from support.boxes import require
from support.fault_nursery import Nursery
from support.fault_schedule import Schedule
from support.fault_world import world
from support.processes import Processes

pytestmark = pytest.mark.anyio

IN_A_WORLD = 10
"""Schedules that share a hub and a runner: starting them takes as long as a schedule."""


def worlds() -> list[list[int]]:
    """The seeds to play, a world's at a time."""
    if chosen := os.environ.get("QUARTERDECK_FAULT_SEEDS"):
        seeds = [int(seed) for seed in chosen.split(",")]
    else:
        seeds = list(range(1, int(os.environ.get("QUARTERDECK_FAULT_COUNT", "200")) + 1))
    return [seeds[at : at + IN_A_WORLD] for at in range(0, len(seeds), IN_A_WORLD)]


IN_A_SANDBOX = tuple(
    range(1001, 1001 + int(os.environ.get("QUARTERDECK_FAULT_SANDBOXED", str(IN_A_WORLD))))
)
"""The seeds that are played with sandboxed CLIs."""


@pytest.mark.no_cover
@pytest.mark.parametrize("seeds", worlds(), ids=lambda seeds: f"seeds-{seeds[0]}-{seeds[-1]}")
async def test_nothing_is_lost_doubled_or_disordered_whatever_is_killed_or_cut(
    seeds: list[int], tmp_path: Path, nursery: Nursery, processes: Processes
) -> None:
    await play(seeds, tmp_path, nursery, processes)


async def test_the_same_holds_for_clis_in_a_sandbox(
    tmp_path: Path, nursery: Nursery, processes: Processes
) -> None:
    """Between the runner and the CLI there is bubblewrap, which is killed in its place."""
    await anyio.to_thread.run_sync(require, Kind.BUBBLEWRAP)
    await play(IN_A_SANDBOX, tmp_path, nursery, processes, sandbox="protect")
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        events = [
            stored.event
            for view in await journal.summaries(limit=1000, archived=None)
            for stored in await journal.read(view.session, limit=10_000)
        ]
    started = [event for event in events if isinstance(event, SandboxStarted)]
    assert started
    assert {event.state.kind for event in started} == {Kind.BUBBLEWRAP.value}
    left = await anyio.to_thread.run_sync(lambda: list(tmp_path.glob("cli/*/.husky")))
    assert left == [], "placeholders are removed"


async def play(
    seeds: Sequence[int],
    tmp_path: Path,
    nursery: Nursery,
    processes: Processes,
    sandbox: SandboxMode = "off",
) -> None:
    """Play schedules in one world, and check what is left of it."""
    async with world(tmp_path, nursery, processes) as one:
        for seed in seeds:
            schedule = Schedule(one, seed, sandbox)
            found = await schedule.play()
            sys.stdout.write(f"seed {seed}: {' '.join(schedule.done)}\n")
            assert not found, f"QUARTERDECK_FAULT_SEEDS={seed}: {schedule.done}: {found}"
    await views_are_what_the_events_come_to(tmp_path / "journal.db")


async def views_are_what_the_events_come_to(path: Path) -> None:
    """Read the file that all those hubs left, and fold every session from its first event."""
    async with await SqliteJournal.open(path) as journal:
        views = await journal.summaries(limit=1000, archived=None)
        assert views
        for view in views:
            events: list[Stored] = []
            while page := await journal.read(view.session, after=len(events)):
                events += page
            assert fold_all(None, events) == view
        assert await journal.open_asks() == []
