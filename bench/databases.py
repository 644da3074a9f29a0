"""Row 15: the journal in PostgreSQL beside the one in a file, in the same run.

A real server, on a socket, that waits for the disk (`fsync` is on). Appends in groups and one by
one as in row 8; what another journal on the same database sees, and when; and whether appending
stays as fast while the journal grows. `make bench ROW=15`, with GROWN=1000000 in the environment
for the whole growth.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from bench.journals import APPENDED, GROUP, PACE_SECONDS, PACED, WRITERS, begin, events
from bench.rounds import interleaved_async, percentile
from bench.table import Bar, Kind, Measure, Peer, Sample, paired
from quarterdeck.journal.engines import open_journal
from quarterdeck.journal.journal_threads import ThreadedJournal
from quarterdeck.protocol.events import Event
from quarterdeck.service.service import SWITCH_SECONDS
from quarterdeck.testing.postgres import PostgresServer

GROWN = int(os.environ.get("GROWN", "200000"))
"""How many events the growing journal has in the end."""
STEPS = 5
GROWN_SESSIONS = 1000
SEEN = 300
"""How many single appends the other journal is timed with."""

Place = Callable[[], str | Path]


async def databases(folder: Path, rounds: int) -> list[Measure]:
    """Row 15."""
    sys.setswitchinterval(SWITCH_SECONDS)
    made = events(APPENDED)
    number = 0

    def file() -> Path:
        nonlocal number
        number += 1
        return folder / f"beside-{number}"

    with PostgresServer(durable=True) as server:
        places: dict[str, Place] = {"ours": server.create_database, "peer": file}
        groups = {name: _rate(place, made) for name, place in places.items()}
        appended = await interleaved_async(groups, rounds)
        paces = {name: _tail(place, made) for name, place in places.items()}
        paced = await interleaved_async(paces, rounds)
        seen = [await _seen(server.create_database(), made) for _ in range(rounds)]
        grown = await _grown(server.create_database(), made)
    return [
        Measure(
            row=15,
            work=f"{APPENDED:,} events of 300 bytes appended to PostgreSQL in groups",
            unit="events/s",
            ours=Sample(tuple(appended["ours"])),
            peer=Peer("SQLite, the same", Sample(tuple(appended["peer"]))),
            ratio=paired(appended["ours"], appended["peer"]),
            bar=Bar(Kind.AT_LEAST, 40_000),
        ),
        Measure(
            row=15,
            work=f"acknowledgement at {PACED:,} events/s, p99",
            unit="ms",
            ours=Sample(tuple(paced["ours"])),
            peer=Peer("SQLite, the same", Sample(tuple(paced["peer"]))),
            ratio=paired(paced["ours"], paced["peer"]),
        ),
        Measure(
            row=15,
            work="an event of one hub at a follower of the other, p50",
            unit="ms",
            ours=Sample(tuple(each[0] for each in seen)),
        ),
        Measure(
            row=15,
            work="the same, p99",
            unit="ms",
            ours=Sample(tuple(each[1] for each in seen)),
        ),
        Measure(
            row=15,
            work=f"appending at {GROWN:,} events in {GROWN_SESSIONS:,} sessions, to the beginning",
            unit="×",
            ours=Sample((grown,)),
            bar=Bar(Kind.AT_LEAST, 0.7),
        ),
    ]


def _rate(place: Place, made: list[Event]) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        async with await _opened(place) as journal:
            for writer in range(WRITERS):
                await begin(journal, f"s{writer}")
            share = len(made) // WRITERS

            async def write(writer: int) -> None:
                for at in range(writer * share, (writer + 1) * share, GROUP):
                    await journal.append(f"s{writer}", made[at : at + GROUP])

            start = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for writer in range(WRITERS):
                    tasks.start_soon(write, writer)
            return len(made) / (time.perf_counter() - start)

    return measure


def _tail(place: Place, made: list[Event]) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        """The 99th percentile of the acknowledgements, in ms, each event by itself."""
        took: list[float] = []
        async with await _opened(place) as journal, anyio.create_task_group() as tasks:
            for writer in range(WRITERS):
                await begin(journal, f"s{writer}")

            async def write(number: int) -> None:
                start = time.perf_counter()
                await journal.append(f"s{number % WRITERS}", [made[number]])
                took.append((time.perf_counter() - start) * 1000)

            start, number = time.perf_counter(), 0
            while (passed := time.perf_counter() - start) < PACE_SECONDS:
                while number < passed * PACED:
                    tasks.start_soon(write, number)
                    number += 1
                await anyio.sleep(0.001)
        return percentile(took, 0.99)

    return measure


async def _seen(url: str, made: list[Event]) -> tuple[float, float]:
    """From an append at one journal to a follower of another: median and 99th percentile, in ms."""
    took: list[float] = []
    async with await open_journal(url) as one, await open_journal(url) as other:
        await begin(one, "s")
        follower = other.follow(after=0)
        await anext(follower)
        for number in range(SEEN):
            start = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.append, "s", [made[number]])
                await anext(follower)
                took.append((time.perf_counter() - start) * 1000)
            await anyio.sleep(0.002)
    return percentile(took, 0.5), percentile(took, 0.99)


async def _grown(url: str, made: list[Event]) -> float:
    """The rate of the last part of a growing journal, to that of the first."""
    rates: list[float] = []
    async with await open_journal(url) as journal:
        for number in range(GROWN_SESSIONS):
            await begin(journal, f"s{number}")
        part = GROWN // STEPS
        at = 0
        for _ in range(STEPS):
            start = time.perf_counter()
            written = 0
            while written < part:
                async with anyio.create_task_group() as tasks:
                    for _ in range(WRITERS):
                        some = made[at % (APPENDED - GROUP) :][:GROUP]
                        tasks.start_soon(journal.append, f"s{at // GROUP % GROWN_SESSIONS}", some)
                        at += GROUP
                        written += GROUP
            rates.append(written / (time.perf_counter() - start))
    return rates[-1] / rates[0]


async def _opened(place: Place) -> ThreadedJournal:
    return await open_journal(place())
