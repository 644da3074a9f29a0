"""Rows 8 and 9: the journal by itself, and a long session that is opened again.

Row 8 appends from ten sessions at once, as fast as it is acknowledged, and then at a steady pace.
The peer is the same database with one plain insert for each group and nothing else kept; the limit
is a file that is written and synced. Row 9 opens a hub on a journal of 100,000 events: a page by
HTTP, and all of it by the stream.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
import urllib.request
from pathlib import Path

import anyio
from msgspec import Raw

from bench import lines
from bench.client import Counting
from bench.rounds import interleaved_async, percentile
from bench.served import Served, quiet, served
from bench.table import Bar, Kind, Measure, Peer, Sample, paired
from quarterdeck.history.texts import texts_of
from quarterdeck.journal.base import Log
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.journal.sqlite.search import SearchIndex
from quarterdeck.protocol.events import Event, RunStarting, Said, SessionCreated
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.service.service import SWITCH_SECONDS

APPENDED, WRITERS, GROUP = 100_000, 10, 250
PACED, PACE_SECONDS = 5000, 2.0
LONG = 100_000
WORD = b'"total_tokens"'


def events(count: int) -> list[Event]:
    """Events that keep lines of about 300 bytes."""
    said = lines.progress_lines(1000)
    return [
        Said(run="r", number=number, line=Raw(said[number % 1000].encode()))
        for number in range(1, count + 1)
    ]


async def begin(journal: Log, session: str) -> list[Stored]:
    """Make a session, so that there is something to append to."""
    spec = SessionSpec(directory="/work")
    created = SessionCreated(spec=spec, by="bench")
    return await journal.append(session, [created, RunStarting(run="r", machine="")])


async def append(folder: Path, rounds: int) -> list[Measure]:
    """Row 8. Threads take turns as often as they do in the hub."""
    sys.setswitchinterval(SWITCH_SECONDS)
    made = events(APPENDED)
    data = [bytes(each.line) for each in made if isinstance(each, Said)]
    number = 0

    def fresh() -> Path:
        nonlocal number
        number += 1
        return folder / f"append-{number}"

    async def ours() -> float:
        return APPENDED / await _appended(fresh(), made)

    async def peer() -> float:
        return APPENDED / await asyncio.to_thread(_plain_inserts, fresh(), data)

    async def limit() -> float:
        return APPENDED / await asyncio.to_thread(_synced_file, fresh(), data)

    found = await interleaved_async({"ours": ours, "peer": peer, "limit": limit}, rounds)
    tails = [await _paced(fresh(), made) for _ in range(rounds)]
    return [
        Measure(
            row=8,
            work=f"{APPENDED:,} events of 300 bytes appended, synchronous=FULL",
            unit="events/s",
            ours=Sample(tuple(found["ours"])),
            peer=Peer("plain inserts, same groups", Sample(tuple(found["peer"]))),
            limit=Peer("a file, written and synced", Sample(tuple(found["limit"]))),
            ratio=paired(found["ours"], found["peer"]),
            bar=Bar(Kind.AT_LEAST, 100_000),
            note="ours also checks each event, keeps the views of its session, and wakes followers",
        ),
        Measure(
            row=8,
            work=f"acknowledgement at {PACED:,} events/s, p99",
            unit="ms",
            ours=Sample(tuple(tails)),
            bar=Bar(Kind.AT_MOST, 15),
        ),
    ]


async def _appended(path: Path, made: list[Event]) -> float:
    async with await SqliteJournal.open(path) as journal:
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
        return time.perf_counter() - start


async def _paced(path: Path, made: list[Event]) -> float:
    """The 99th percentile of the acknowledgements, in ms, each event by itself."""
    took: list[float] = []
    async with await SqliteJournal.open(path) as journal, anyio.create_task_group() as tasks:
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


def _plain_inserts(path: Path, data: list[bytes]) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE events (position INTEGER PRIMARY KEY, session, seq, at, json)")
    connection.execute("CREATE UNIQUE INDEX by_session ON events (session, seq)")
    start = time.perf_counter()
    for at in range(0, len(data), GROUP * WRITERS):
        rows = [
            (at + n, n % WRITERS, at + n, 0, line)
            for n, line in enumerate(data[at : at + GROUP * WRITERS], 1)
        ]
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    connection.close()
    return seconds


def _synced_file(path: Path, data: list[bytes]) -> float:
    with path.open("wb", buffering=0) as file:
        start = time.perf_counter()
        for at in range(0, len(data), GROUP * WRITERS):
            file.write(b"\n".join(data[at : at + GROUP * WRITERS]))
            os.fdatasync(file.fileno())
        return time.perf_counter() - start


# --- row 9 ---------------------------------------------------------------------------------------


async def fill(home: Path, count: int, sessions: int = 1) -> None:
    """A journal with so many events, for a hub that is started afterwards."""
    await anyio.Path(home).mkdir(mode=0o700, exist_ok=True)
    made = events(5000)
    last: list[Stored] = []
    async with await SqliteJournal.open(home / "journal.db") as journal:
        for number in range(sessions):
            last = await begin(journal, f"long-{number}")
        written = at = 0
        while written < count - 2 * sessions:
            some = made[: min(len(made), count - 2 * sessions - written)]
            last = await journal.append(f"long-{at % sessions}", some)
            written += len(some)
            at += 1
        # There is no word in these events to be found: the index need not look at each of them.
        index = SearchIndex(home / "search.db", journal.epoch, journal.position, texts_of)
        index.add(last[-1:])
        index.close()


async def reopen(folder: Path, rounds: int) -> list[Measure]:
    """Row 9."""
    await fill(folder / "long", LONG)
    async with served(folder, name="long", runner=False) as deck:
        await quiet(deck.pid)

        async def page() -> float:
            return await asyncio.to_thread(_first_page, deck) * 1000

        async def everything() -> float:
            return (LONG - 2) / await _everything(deck)

        async def limit() -> float:
            return LONG / await asyncio.to_thread(_select, deck)

        found = await interleaved_async({"page": page, "all": everything, "limit": limit}, rounds)
    return [
        Measure(
            row=9,
            work=f"a session of {LONG:,} events opened again: first page by HTTP",
            unit="ms",
            ours=Sample(tuple(found["page"])),
            bar=Bar(Kind.AT_MOST, 50),
        ),
        Measure(
            row=9,
            work="all of it, from the journal to a follower of the stream",
            unit="events/s",
            ours=Sample(tuple(found["all"])),
            limit=Peer("the rows by sqlite3 alone", Sample(tuple(found["limit"]))),
            bar=Bar(Kind.AT_LEAST, 300_000),
        ),
    ]


def _first_page(deck: Served) -> float:
    url = f"{deck.address}/api/sessions/long-0/events?limit=500"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {deck.token}"})
    start = time.perf_counter()
    with urllib.request.urlopen(request, timeout=30) as answer:
        body = answer.read()
    seconds = time.perf_counter() - start
    if body.count(WORD) < 400:
        raise RuntimeError("the page is not full; what was measured means nothing")
    return seconds


async def _everything(deck: Served) -> float:
    async with deck.client() as client:
        epoch = client.epoch
    follower = await Counting.connected(f"{deck.address}/api/stream", deck.token, WORD, LONG - 2)
    try:
        start = time.perf_counter()
        follower.follow("long-0", 0, epoch)
        async with asyncio.timeout(60):
            await follower.done
        return time.perf_counter() - start
    finally:
        follower.close()


def _select(deck: Served) -> float:
    connection = sqlite3.connect(f"file:{deck.home / 'journal.db'}?mode=ro", uri=True)
    start = time.perf_counter()
    rows = connection.execute("SELECT seq, position, at, json FROM events WHERE session = 1")
    count = sum(1 for _ in rows)
    seconds = time.perf_counter() - start
    connection.close()
    if count != LONG:
        raise RuntimeError(f"{count} events are in the journal")
    return seconds
