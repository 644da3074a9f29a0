"""Rows 10 and 11: what it weighs when nothing happens, and how long it takes to begin.

A process weighs what it has in memory, libraries included. What one more session, follower or agent
costs is the difference that many of them make to what the process has for itself, divided by their
number.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.to_thread

from bench.client import Counting
from bench.journals import begin
from bench.rounds import interleaved
from bench.served import Served, own_bytes, prompt, quiet, resident_bytes, served, start, stop
from bench.table import Bar, Kind, Measure, Peer, Sample
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.service.local_hub import RUNNER, end_runner, live_hub

ENDED, LIVE, FOLLOWERS = 1000, 30, 200
MB, KB = 1e6, 1e3


async def memory(folder: Path, rounds: int) -> list[Measure]:
    """Row 10. Each round starts a hub of its own, so three of them have to do."""
    found: dict[str, list[float]] = {}
    for number in range(min(rounds, 3)):
        for name, value in (await _weighed(folder, number)).items():
            found.setdefault(name, []).append(value)
    bare = Sample((await asyncio.to_thread(_bare_interpreter),))
    samples = {name: Sample(tuple(values)) for name, values in found.items()}

    def measure(name: str, work: str, unit: str, most: float, limit: Peer | None = None) -> Measure:
        bar = Bar(Kind.AT_MOST, most)
        return Measure(row=10, work=work, unit=unit, ours=samples[name], limit=limit, bar=bar)

    return [
        measure("hub", "an idle hub", "MB", 90, Peer("a bare interpreter", bare)),
        measure("ended", f"each session at rest, of {ENDED:,}", "kB", 100),
        measure("live", f"each idle session with an agent, of {LIVE}", "kB", 100),
        measure("follower", f"each idle follower, of {FOLLOWERS}", "kB", 40),
        measure("runner", f"the runner, for each agent, of {LIVE}", "MB", 1),
    ]


async def _weighed(folder: Path, number: int) -> dict[str, float]:
    found: dict[str, float] = {}
    async with served(folder, name=f"empty-{number}") as deck, AsyncExitStack() as stack:
        client = await stack.enter_async_context(deck.client())
        await quiet(deck.pid)
        # The first of each kind loads modules and fills pools, which the next ones share.
        url = f"{deck.address}/api/stream"
        followers = [await Counting.connected(url, deck.token, b"\0", 1) for _ in range(5)]
        sessions = [await client.create(deck.spec()) for _ in range(2)]
        await _ready(deck, sessions)
        await quiet(deck.pid)
        found["hub"] = resident_bytes(deck.pid) / MB
        hub, runner = own_bytes(deck.pid), own_bytes(deck.runner)
        sessions = [await client.create(deck.spec()) for _ in range(LIVE)]
        await _ready(deck, sessions)
        await quiet(deck.pid)
        found["live"] = (own_bytes(deck.pid) - hub) / LIVE / KB
        found["runner"] = (own_bytes(deck.runner) - runner) / LIVE / MB
        hub = own_bytes(deck.pid)
        followers += [await Counting.connected(url, deck.token, b"\0", 1) for _ in range(FOLLOWERS)]
        for follower in followers:
            follower.say({"t": "follow", "id": "1", "all": True})
        await quiet(deck.pid)
        found["follower"] = (own_bytes(deck.pid) - hub) / FOLLOWERS / KB
        for follower in followers:
            follower.close()
    found["ended"] = await _ended(folder, number)
    return found


async def _ready(deck: Served, sessions: list[str]) -> None:
    """Have each session do one turn."""
    async with deck.client() as client:
        for session in sessions:
            await client.follow({session: 0}, live=False)
            await client.prompt(session, prompt({"do": "nothing"}))
        waiting = set(sessions)
        with anyio.fail_after(60):
            while waiting:
                for stored in (await client.frame()).get("events", ()):
                    if stored["event"]["kind"] == "turn.ended":
                        waiting.discard(stored["session"])


async def _ended(folder: Path, number: int) -> float:
    """What a session at rest costs: two hubs, one of them with a thousand."""
    weights = []
    for count in (0, ENDED):
        name = f"ended-{number}-{count}"
        (folder / name).mkdir(mode=0o700)
        async with await SqliteJournal.open(folder / name / "journal.db") as journal:
            for session in range(count):
                await begin(journal, f"s{session}")
        async with served(folder, name=name, runner=False) as deck:
            await quiet(deck.pid)
            weights.append(own_bytes(deck.pid))
    return (weights[1] - weights[0]) / ENDED / KB


def _bare_interpreter() -> float:
    process = subprocess.Popen(
        [sys.executable, "-c", "import asyncio, sqlite3; input()"], stdin=subprocess.PIPE
    )
    try:
        time.sleep(0.5)
        return resident_bytes(process.pid) / MB
    finally:
        process.communicate(b"\n")


# --- row 11 --------------------------------------------------------------------------------------


async def starting(folder: Path, rounds: int) -> list[Measure]:
    """Row 11. A hub with no sessions serves beside it, for `ps`."""
    async with served(folder, runner=False, name="for-ps") as hub:
        return await anyio.to_thread.run_sync(_starting, folder, hub.home, rounds)


def _starting(folder: Path, home: Path, rounds: int) -> list[Measure]:
    number = 0

    def serve() -> float:
        nonlocal number
        number += 1
        return _first_answer(folder / f"start-{number}")

    found = interleaved(
        {
            "serve": serve,
            "help": lambda: _run("-m", "quarterdeck.cli", "--help"),
            "ps": lambda: _processor_time(home, "ps"),
            "python": lambda: _run("-c", "pass"),
        },
        max(rounds, 5),
    )
    least = Peer("python -c pass", Sample(tuple(found["python"])))
    return [
        Measure(
            row=11,
            work="`quarterdeck serve`, cold, to its first answer",
            unit="s",
            ours=Sample(tuple(found["serve"])),
            limit=least,
            bar=Bar(Kind.AT_MOST, 1.0),
        ),
        Measure(
            row=11,
            work="`quarterdeck --help`",
            unit="s",
            ours=Sample(tuple(found["help"])),
            limit=least,
            bar=Bar(Kind.AT_MOST, 0.2),
        ),
        Measure(
            row=11,
            work="`quarterdeck ps`, processor time",
            unit="s",
            ours=Sample(tuple(found["ps"])),
            bar=Bar(Kind.AT_MOST, 0.3),
        ),
    ]


def _run(*arguments: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=60)
    return time.perf_counter() - begun


def _processor_time(home: Path, *arguments: str) -> float:
    """What a command takes of the processor while a hub serves in `home`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "quarterdeck.cli", *arguments]
    variables = {**os.environ, "QUARTERDECK_HOME": str(home)}
    subprocess.run(command, check=True, capture_output=True, timeout=60, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _first_answer(home: Path) -> float:
    home.mkdir(mode=0o700)
    begun = time.perf_counter()
    process = start(home)
    try:
        while (state := live_hub(home)) is None:
            if process.poll() is not None or time.perf_counter() - begun > 60:
                raise RuntimeError(f"the hub did not start: {(home / 'serve.log').read_text()}")
            time.sleep(0.005)
        while not _answers(f"{state.address}/api/health"):
            time.sleep(0.005)
        return time.perf_counter() - begun
    finally:
        deadline = time.perf_counter() + 20
        while not (home / RUNNER).exists() and time.perf_counter() < deadline:
            time.sleep(0.05)  # the runner comes a moment later, and must not be left behind
        end_runner(home / RUNNER)
        stop(process)
        end_runner(home / RUNNER)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True  # an answer too: it wants to know who asks
    except OSError:
        return False


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))
