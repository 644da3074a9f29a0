"""Row 12: what an event costs as everything grows. Processor time of the hub for each event.

Two ways to grow: 1 to 1000 sessions with a follower each, and a journal of a thousand to a million
events. Each size has a hub of its own; they take turns, at the same pace for all, so that what
differs is the size alone. The same events a second reach each hub, whatever the number of sessions.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from bench.client import Counting
from bench.journals import fill
from bench.machine import NAME, Machine, machine
from bench.rounds import interleaved_async
from bench.served import Served, quiet, served
from bench.table import Bar, Kind, Measure, Sample, paired
from quarterdeck.fronts.http import Access, Role

SESSIONS = (1, 10, 100, 1000)
EVENTS = (1_000, 10_000, 100_000, 1_000_000)
FEW = 10
"""The sessions that speak while the journal grows."""
FOLLOWERS = 200
"""Followers with one token: the hub limits the streams of each."""
RATE, SECONDS = 1000, 1.5
WORD = b'"total_tokens"'


class Point:
    """One size: a hub, its sessions, and their followers."""

    def __init__(self, deck: Served, made: Machine, followers: list[Counting]) -> None:
        self.deck = deck
        self.made = made
        self.followers = followers

    async def cost(self) -> float:
        """Microseconds of the hub's processor time for each event."""
        runs = list(self.made.runs.values())
        count = int(RATE * SECONDS)
        shares = [count // len(runs) + (n < count % len(runs)) for n in range(len(runs))]
        for follower, share in zip(self.followers, shares, strict=True):
            follower.expect(share)
        before, start = self.deck.cpu_seconds(), time.monotonic()
        for number in range(count):
            wait = start + number / RATE - time.monotonic()
            if wait > 0:
                await anyio.sleep(wait)
            await runs[number % len(runs)].say(self.made.line())
        with anyio.fail_after(60):
            for follower, share in zip(self.followers, shares, strict=True):
                if share:
                    await follower.done
        return (self.deck.cpu_seconds() - before) / count * 1e6


async def _point(stack: AsyncExitStack, folder: Path, name: str, sessions: int) -> Point:
    home = folder / name
    home.mkdir(mode=0o700, exist_ok=True)
    access = Access(home)
    token = access.make_token(NAME, Role.RUNNER)
    viewers = [
        access.make_token(f"viewer-{number}", Role.VIEWER)
        for number in range(-(-sessions // FOLLOWERS))
    ]
    deck = await stack.enter_async_context(served(folder, runner=False, name=name))
    made = await stack.enter_async_context(machine(deck.address, token))
    followers: list[Counting] = []
    async with deck.client() as client:
        with anyio.fail_after(10):
            await made.there.wait()
        ids = [await client.create(deck.spec(machine=NAME)) for _ in range(sessions)]
        for number, session in enumerate(ids):
            url = f"{deck.address}/api/stream"
            viewer = viewers[number // FOLLOWERS]
            follower = await Counting.connected(url, viewer, WORD, 1)
            follower.follow(session, 0, client.epoch)
            followers.append(follower)
    with anyio.fail_after(60):
        while len(made.runs) < sessions:  # noqa: ASYNC110 - they come by themselves
            await anyio.sleep(0.05)
        for run in list(made.runs.values()):
            await run.ready.wait()
    made.runs = {session: made.runs[session] for session in ids}
    await quiet(deck.pid, 120)
    return Point(deck, made, followers)


async def growth(folder: Path, rounds: int) -> list[Measure]:
    """Row 12."""
    found: dict[str, list[float]] = {}
    async with AsyncExitStack() as stack:
        points = {
            f"{size} sessions": await _point(stack, folder, f"sessions-{size}", size)
            for size in SESSIONS
        }
        found |= await interleaved_async({n: p.cost for n, p in points.items()}, rounds)
    async with AsyncExitStack() as stack:
        points = {}
        for size in EVENTS:
            await fill(folder / f"events-{size}", size, sessions=max(1, size // 1000))
            points[f"{size} events"] = await _point(stack, folder, f"events-{size}", FEW)
        found |= await interleaved_async({n: p.cost for n, p in points.items()}, rounds)
    few, small = found["1 sessions"], found[f"{EVENTS[0]} events"]
    paced = Measure(
        row=12,
        work=f"processor time of the hub for each paced event, {FEW} sessions with a follower each",
        unit="µs",
        ours=Sample(tuple(found[f"{FEW} sessions"])),
        bar=Bar(Kind.AT_MOST, 250),
    )
    return [
        paced,
        *(_measure(found[f"{size} sessions"], few, _sessions(size)) for size in SESSIONS),
        *(_measure(found[f"{n} events"], small, f"{n:,} events in the journal") for n in EVENTS),
    ]


def _sessions(size: int) -> str:
    return f"{size:,} sessions with a follower each" if size > 1 else "1 session with a follower"


def _measure(values: list[float], base: list[float], work: str) -> Measure:
    return Measure(
        row=12,
        work=f"processor time of the hub for each event: {work}",
        unit="µs",
        ours=Sample(tuple(values)),
        ratio=paired(values, base),
        bar=Bar(Kind.RATIO_AT_MOST, 2.0),
    )
