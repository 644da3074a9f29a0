"""Row 16: two hubs on one PostgreSQL, beside one hub with its file, in the same run.

Fifty agents at a steady pace, as in row 6: half of them at each hub, followed at the hub that has
them, and then at the other one. And the time from `kill -9` of a hub to the first line that the
other one has journalled; beside it one hub with a file, that is killed and started again at once.
`make bench ROW=16`.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg

from bench.client import Client
from bench.rounds import interleaved_async, percentile
from bench.served import Served, prompt, served, start, stop
from bench.table import Bar, Kind, Measure, Peer, Sample, paired
from bench.through import RATE, SESSIONS, paced_round, paced_sessions
from quarterdeck.fronts.http import Access, Role
from quarterdeck.service.local_hub import live_hub
from quarterdeck.testing.postgres import PostgresServer

TAKEOVER_RATE, TAKEOVER_SECONDS = 100.0, 20.0
"""What the agent says while its hub is killed: the first line after it is soon there."""
BEFORE = 50
"""How many lines are journalled before the hub is killed."""
PATIENCE = 60.0
URL = "QUARTERDECK_JOURNAL_URL"


async def fleets(folder: Path, rounds: int) -> list[Measure]:
    """Row 16."""
    with PostgresServer(durable=True) as server:
        delays = await _delays(folder, server.create_database(), rounds)
        url = server.create_database()
        taken: list[float] = []
        again: list[float] = []
        for number in range(rounds):
            taken.append(await _taken_over(folder, f"take-{number}", url))
            again.append(await _started_again(folder, f"again-{number}"))
    return [*delays, _takeover(taken, again)]


def _takeover(taken: list[float], again: list[float]) -> Measure:
    return Measure(
        row=16,
        work="from kill -9 of a hub to the first line journalled by the other one",
        unit="s",
        ours=Sample(tuple(taken)),
        peer=Peer("one hub with SQLite, started again", Sample(tuple(again))),
        ratio=paired(taken, again),
        bar=Bar(Kind.AT_MOST, 2.0),
    )


# --- the delay -----------------------------------------------------------------------------------


async def _delays(folder: Path, url: str, rounds: int) -> list[Measure]:
    tails: dict[str, list[float]] = {"file": [], "own": [], "other": []}
    async with AsyncExitStack() as stack:

        async def hub(name: str, url: str | None) -> tuple[Served, Client, list[str]]:
            variables = {} if url is None else {URL: url}
            deck = await stack.enter_async_context(served(folder, name=name, variables=variables))
            client = await stack.enter_async_context(deck.client())
            count = SESSIONS if url is None else SESSIONS // 2
            return deck, client, await paced_sessions(deck, client, count)

        alone, *two = [await hub("alone", None), await hub("left", url), await hub("right", url)]

        async def file() -> float:
            deck, client, sessions = alone
            return _summed(tails["file"], await paced_round(deck, client, sessions, EACH))

        async def own() -> float:
            return _summed(tails["own"], await _at_both(two, [two[0][0], two[1][0]]))

        async def other() -> float:
            return _summed(tails["other"], await _at_both(two, [two[1][0], two[0][0]]))

        medians = await interleaved_async({"file": file, "own": own, "other": other}, rounds)
    work = f"{SESSIONS} sessions over two hubs, {RATE:,.0f} journalled events/s, followed at"
    places = {"own": "the hub that has them", "other": "the other hub"}
    return [
        Measure(
            row=16,
            work=f"{work} {place}: delay, {share}",
            unit="ms",
            ours=Sample(tuple(found[name])),
            peer=Peer("one hub with SQLite", Sample(tuple(found["file"]))),
            ratio=paired(found[name], found["file"]),
            bar=Bar(Kind.RATIO_AT_MOST, 3.0) if share == "p99" and name == "own" else Bar(),
        )
        for name, place in places.items()
        for share, found in (("p50", medians), ("p99", tails))
    ]


EACH = RATE / SESSIONS


def _summed(tails: list[float], delays: list[float]) -> float:
    tails.append(percentile(delays, 0.99))
    return statistics.median(delays)


async def _at_both(
    hubs: list[tuple[Served, Client, list[str]]], followed: list[Served]
) -> list[float]:
    """The delays of all events; the sessions of each hub are followed at one of them."""
    found: list[float] = []

    async def one(at: Served, client: Client, sessions: list[str]) -> None:
        found.extend(await paced_round(at, client, sessions, EACH))

    async with anyio.create_task_group() as tasks:
        for (_, client, sessions), at in zip(hubs, followed, strict=True):
            tasks.start_soon(one, at, client, sessions)
    return found


# --- a killed hub --------------------------------------------------------------------------------


async def _taken_over(folder: Path, name: str, url: str) -> float:
    """Seconds from the kill of the hub that has the machine to the other hub's first line."""
    async with AsyncExitStack() as stack:
        hubs = [
            await stack.enter_async_context(
                served(folder, name=f"{name}-{side}", runner=False, variables={URL: url})
            )
            for side in "ab"
        ]
        token = folder / f"{name}.token"
        await anyio.Path(token).write_text(Access(hubs[0].home).make_token(name, Role.RUNNER))
        await anyio.to_thread.run_sync(_until_same_tokens, hubs)
        stack.enter_context(_runner(folder / f"{name}-runner", token, name, hubs))
        at = await anyio.to_thread.run_sync(_hub_of_machine, url, name, hubs)
        client = await stack.enter_async_context(hubs[1 - at].client())
        session = await client.create(hubs[at].spec(machine=name))
        await _speak(client, session)
        killed = _kill(hubs[at].process)
        return await _first_line(client, session, killed)


async def _started_again(folder: Path, name: str) -> float:
    """The same for a hub with a file: it is started again at once, and its runner comes back."""
    async with served(folder, name=name) as deck:
        async with deck.client() as client:
            session = await client.create(deck.spec())
            await _speak(client, session)
        killed = _kill(deck.process)
        process = start(deck.home, "--port", deck.address.rpartition(":")[2])
        try:
            await anyio.to_thread.run_sync(_until_serving, deck.home, process)
            again = Served(deck.home, deck.work, process)
            async with again.client() as client:
                await client.follow({session: 0}, live=False)
                return await _first_line(client, session, killed)
        finally:
            await anyio.to_thread.run_sync(stop, process)


async def _speak(client: Client, session: str) -> None:
    """Have the agent say something all the time, and wait until that is journalled."""
    await client.follow({session: 0}, live=False)
    todo = {"do": "pace", "rate": TAKEOVER_RATE, "seconds": TAKEOVER_SECONDS}
    await client.prompt(session, prompt({**todo, "at": time.monotonic()}))
    seen = 0
    async with asyncio.timeout(PATIENCE):
        while seen < BEFORE:
            seen += sum(_is_line(each) for each in (await client.frame()).get("events", ()))


async def _first_line(client: Client, session: str, killed: float) -> float:
    """Seconds from the kill to the time of the first line that was journalled after it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for stored in (await client.frame()).get("events", ()):
                at: int = stored["at"]
                if stored["session"] == session and _is_line(stored) and at / 1000 > killed:
                    return at / 1000 - killed


def _is_line(stored: dict[str, dict[str, object]]) -> bool:
    line = stored["event"].get("line")
    return isinstance(line, dict) and line.get("subtype") == "task_progress"


def _kill(process: subprocess.Popen[bytes]) -> float:
    """Kill a hub, and wait for its end: what was journalled later is not from it."""
    began = time.time()
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    return began


def _until_serving(home: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while (state := live_hub(home)) is None or state.pid != process.pid:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the hub did not start: {(home / 'serve.log').read_text()}")
        time.sleep(0.01)


def _until_same_tokens(hubs: list[Served]) -> None:
    """A new token is known to the other hub a moment later."""
    deadline = time.monotonic() + PATIENCE
    while len({(hub.home / "access.json").read_bytes() for hub in hubs}) > 1:
        if time.monotonic() > deadline:
            raise RuntimeError("the second hub has not learned of the runner's token")
        time.sleep(0.05)


@contextmanager
def _runner(home: Path, token: Path, machine: str, hubs: list[Served]) -> Iterator[None]:
    """A runner that knows all hubs. A token is for the machine of its name."""
    home.mkdir(mode=0o700)
    token.chmod(0o600)
    with (home.parent / f"{home.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "quarterdeck.cli", "runner", "--token-file", str(token),
             "--machine", machine, "--home", str(home), "--memory-floor", "0",
             *(f"--hub={hub.address}" for hub in hubs)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        yield
    finally:
        stop(process)


def _hub_of_machine(url: str, machine: str, hubs: list[Served]) -> int:
    """Which hub has the machine now."""
    query = (
        "SELECT h.url FROM quarterdeck.machines m JOIN quarterdeck.hubs h USING (hub)"
        " WHERE m.machine = %s"
    )
    addresses = [hub.address for hub in hubs]
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(query, (machine,)).fetchone()
            if row is not None and row[0] in addresses:
                return addresses.index(row[0])
            time.sleep(0.05)
    raise RuntimeError("the runner is at no hub")
