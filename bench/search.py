"""Measures the search over a large history: `python -m bench search`.

The journal's events are made here and given to the index as the hub would give them: it is the
index that is measured, with the text of a busy deck. Words are drawn as people use them, few of
them often and most of them seldom, so that queries meet everything from a million hits to one.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Raw

from bench import lines
from quarterdeck.history.texts import texts_of
from quarterdeck.journal.sqlite.search import SearchIndex
from quarterdeck.protocol.events import PromptQueued, Said, SessionCreated
from quarterdeck.protocol.search import Search, TextKind
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored

EVENTS = 1_000_000
SESSIONS = 2_000
BATCH = 5000
GOAL_SECONDS = 0.2
VOCABULARY = 30_000
DAY = 86_400_000
FIRST = 1_750_000_000_000


def run_search(folder: Path, rounds: int, events: int = EVENTS) -> None:
    """Fill an index, ask it, and print what it took."""
    index = SearchIndex(folder / "search.db", "bench", events, texts_of)
    started = time.perf_counter()
    stream = _events(events)
    while batch := list(itertools.islice(stream, BATCH)):
        index.add(batch)
    filled = time.perf_counter() - started
    seconds = [_timed(index, wanted) for wanted in _queries() for _ in range(rounds)]
    size = sum(file.stat().st_size for file in folder.glob("search.db*")) / 1e6
    index.close()
    print(f"\nsearch over {events:,} events of {SESSIONS:,} sessions, {rounds} rounds")
    print(f"  filled at {events / filled:,.0f} events/s, {size:.0f} MB")
    print(f"  {'median':42} {statistics.median(seconds):8.3f} s, wanted {GOAL_SECONDS} s")
    print(f"  {'slowest of ' + str(len(seconds)):42} {max(seconds):8.3f} s")


def _timed(index: SearchIndex, wanted: Search) -> float:
    started = time.perf_counter()
    index.search(wanted, EVENTS)
    return time.perf_counter() - started


def _queries() -> list[Search]:
    """What people ask: words of every frequency, phrases, beginnings, and each filter."""
    words = ["w0", "w3 w8", "w40", "w700 w2", "w9000", "w25000", '"w1 w2"', "w12*", "w5 -w6"]
    plain = [Search(words=each) for each in words]
    late = FIRST + 300 * DAY
    filtered = [
        Search(words="w1", session="session-7"),
        Search(words="w1", project="p3"),
        Search(words="w4", machine="m2"),
        Search(words="w2", tool="Bash"),
        Search(words="w2", kind=TextKind.PROMPT),
        Search(words="w3", since=FIRST + 10 * DAY, until=FIRST + 12 * DAY),
        Search(words="w3", since=late),
        Search(words="w30", project="/srv/5", kind=TextKind.ANSWER),
    ]
    return plain + filtered


def _events(count: int) -> Iterator[Stored]:
    dice = random.Random(4)
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    names = [f"w{rank}" for rank in range(VOCABULARY)]
    pool = dice.choices(names, weights, k=500_000)
    seqs = [0] * SESSIONS
    for position in range(1, count + 1):
        number = dice.randrange(SESSIONS)
        seqs[number] += 1
        event: SessionCreated | PromptQueued | Said
        if seqs[number] == 1:
            machine = f"m{number % 5}"
            folder = f"/srv/{number % 50}"
            spec = SessionSpec(directory=folder, machine=machine, project=f"p{number % 50}")
            event = SessionCreated(spec=spec, by="bench")
        else:
            event = _event(dice, pool, position)
        yield Stored(
            session=f"session-{number}",
            seq=seqs[number],
            position=position,
            at=FIRST + position * 365 * DAY // count,
            event=event,
            json=b"",
        )


def _event(dice: random.Random, pool: list[str], number: int) -> PromptQueued | Said:
    """One in ten a prompt, four an answer, two a call of a tool, three what a tool gave."""
    start = dice.randrange(len(pool) - 100)
    text = " ".join(pool[start : start + dice.randint(5, 80)])
    match dice.randrange(10):
        case 0:
            return PromptQueued(prompt=f"p{number}", content=Raw(f'"{text}"'.encode()), by="bench")
        case 1 | 2 | 3 | 4:
            line = lines.text_line(text)
        case 5 | 6:
            line = lines.tool_line(text)
        case _:
            line = lines.result_line(text)
    return Said(run="r", number=number, line=Raw(line.encode()))
