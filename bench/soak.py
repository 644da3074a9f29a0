"""Memory under steady load: `python -m bench soak --minutes 60`. No row: it takes as long as it is.

Ten agents call tools at a pace, with a turn a minute, so that the hub journals some 900 events a
second; one client follows all of them. The memory of hub and runner is read every few seconds. The
slope is fitted to the last half, since pools and caches fill first: at most 0.1 MB a minute after
an hour.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import anyio

from bench.client import Client
from bench.served import Served, own_bytes, prompt, resident_bytes, served

SESSIONS = 10
CALLS = 11
"""Tool calls of each session in a second; each makes about eight events."""
TURN_SECONDS = 60
SAMPLE_SECONDS = 5.0
MB = 1e6
GOAL = 0.1
"""MB a minute, after an hour."""


class Soak:
    """The samples of one run: seconds, and bytes of the hub and of the runner."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, int, int]] = []
        self.events = 0

    def slopes(self, since: float) -> tuple[float, float]:
        """MB a minute of both, from a time in seconds on."""
        chosen = [one for one in self.samples if one[0] >= since]
        times = [seconds / 60 for seconds, _, _ in chosen]
        return (
            slope(times, [hub / MB for _, hub, _ in chosen]),
            slope(times, [runner / MB for _, _, runner in chosen]),
        )


def slope(at: list[float], values: list[float]) -> float:
    """The slope of the line with the least squares; 0 for fewer than two points."""
    if len(at) < 2:
        return 0.0
    middle, mean = sum(at) / len(at), sum(values) / len(values)
    spread = sum((x - middle) ** 2 for x in at)
    return sum((x - middle) * (y - mean) for x, y in zip(at, values, strict=True)) / spread


async def soak(folder: Path, minutes: float, *, report: bool = True) -> Soak:
    """Run the load for so many minutes."""
    found = Soak()
    async with served(folder, name="soak") as deck, anyio.create_task_group() as tasks:
        async with deck.client() as client:
            sessions = [await client.create(deck.spec()) for _ in range(SESSIONS)]
        for session in sessions:
            tasks.start_soon(_turns, deck, session)
        tasks.start_soon(_follow, deck, found)
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < minutes * 60:
            hub, runner = own_bytes(deck.pid), own_bytes(deck.runner)
            found.samples.append((passed, hub, runner))
            if report and len(found.samples) % 12 == 1:
                print(
                    f"{passed / 60:5.1f} min  {found.events:9,} events"
                    f"  hub {hub / MB:6.1f} MB ({resident_bytes(deck.pid) / MB:.1f} resident)"
                    f"  runner {runner / MB:5.1f} MB ({resident_bytes(deck.runner) / MB:.1f})",
                    flush=True,
                )
            await anyio.sleep(SAMPLE_SECONDS)
        tasks.cancel_scope.cancel()
    return found


async def _turns(deck: Served, session: str) -> None:
    """One turn after the other."""
    todo = prompt({"do": "calls", "rate": CALLS, "seconds": TURN_SECONDS})
    async with deck.client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(_beat, client)
        await client.follow({session: 0}, live=False)
        while True:
            await client.prompt(session, todo)
            ended = False
            while not ended:  # however long that takes on a machine that others use too
                events = (await client.frame()).get("events", ())
                ended = any(each["event"]["kind"] == "turn.ended" for each in events)


async def _follow(deck: Served, found: Soak) -> None:
    """A reader of everything, who keeps up."""
    async with deck.client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(_beat, client)
        await client.send({"t": "follow", "all": True})
        while True:
            found.events += len((await client.frame()).get("events", ()))


async def _beat(client: Client) -> None:
    """Say that we are there."""
    while True:
        await anyio.sleep(10)
        await client.send({"t": "beat"})


def run_soak(folder: Path, minutes: float) -> None:
    """Run it, and print what was found."""
    begun = time.monotonic()
    found = asyncio.run(soak(folder, minutes))
    hub, runner = found.slopes(found.samples[-1][0] / 2)
    rate = found.events / (time.monotonic() - begun)
    print(
        f"soak of {minutes:g} min at {rate:.0f} events/s: in the last half the hub grew by"
        f" {hub:.3f} MB/min, the runner by {runner:.3f} MB/min (goal after an hour: {GOAL})"
    )
