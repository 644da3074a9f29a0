"""Rows 1 to 3: what a CLI writes to its pipe, as typed messages in a program.

Each peer is a process of its own, on the same lines from the same emitter. The limit reads the same
pipe with the same event loop and only counts the lines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import lines
from bench.rounds import interleaved
from bench.table import Bar, Kind, Measure, Peer, Sample, paired

STREAM, MIX = 200_000, 50_000
LONG = 10_000_000
LONG_LINES = 20
SDK = "claude-agent-sdk"
NEWLINES = "count newlines from the pipe"


def seconds_of(peer: str, file: Path) -> float:
    """Seconds that a peer takes for a file, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker", peer, str(file)],
        check=True,
        capture_output=True,
        timeout=60,
        env={**os.environ, "CLAUDE_CODE_ENTRYPOINT": "bench"},
    )
    seconds, messages = json.loads(done.stdout)
    if messages < 2:
        raise RuntimeError(f"{peer} saw {messages} messages only; what it measured means nothing")
    return float(seconds)


def newline_seconds(file: Path) -> float:
    """The limit: seconds to read a file from a pipe and count its lines."""
    return seconds_of("newlines", file)


def stream(folder: Path, rounds: int) -> list[Measure]:
    """Row 1."""
    file = folder / "stream.ndjson"
    lines.write(lines.stream_lines(STREAM), file)
    return _beside(1, f"{STREAM:,} stream events", file, 10.0, rounds)


def mix(folder: Path, rounds: int) -> list[Measure]:
    """Row 2."""
    file = folder / "mix.ndjson"
    lines.write(lines.mixed_lines(MIX), file)
    return _beside(2, f"{MIX:,} lines of a busy session, 85 % stream events", file, 6.0, rounds)


def _beside(row: int, work: str, file: Path, goal: float, rounds: int) -> list[Measure]:
    peers = ("ours", "ours_typed", "official", "newlines")
    measures = {peer: partial(seconds_of, peer, file) for peer in peers}
    found = interleaved(measures, rounds)
    official = Peer(SDK, Sample(tuple(found["official"])))
    limit = Peer(NEWLINES, Sample(tuple(found["newlines"])))
    return [
        Measure(
            row=row,
            work=work,
            unit="s",
            ours=Sample(tuple(found["ours"])),
            peer=official,
            limit=limit,
            ratio=paired(found["official"], found["ours"]),
            bar=Bar(Kind.RATIO_AT_LEAST, goal),
            note="each message is typed; the body of a message is decoded when it is asked for",
        ),
        Measure(
            row=row,
            work=f"{work}, every body asked for",
            unit="s",
            ours=Sample(tuple(found["ours_typed"])),
            peer=official,
            limit=limit,
            ratio=paired(found["official"], found["ours_typed"]),
        ),
    ]


def long(folder: Path, rounds: int) -> list[Measure]:
    """Row 3: a line of 10 MB, twenty of them, and longer ones."""
    files = {
        "one": lines.long_line(LONG),
        "twenty": lines.long_line(LONG) * LONG_LINES,
        "double": lines.long_line(2 * LONG),
        "fourfold": lines.long_line(4 * LONG),
    }
    paths: dict[str, Path] = {}
    for name, said in files.items():
        paths[name] = folder / f"long-{name}.ndjson"
        lines.write(said, paths[name])
    measures: dict[str, Callable[[], float]] = {
        f"{peer} {name}": partial(seconds_of, peer, paths[name])
        for name in ("one", "twenty")
        for peer in ("ours", "official", "newlines")
    }
    for name in ("double", "fourfold"):
        measures[f"ours {name}"] = partial(seconds_of, "ours", paths[name])
    found = interleaved(measures, rounds)
    titles = {"one": "one line of 10 MB", "twenty": f"{LONG_LINES} lines of 10 MB"}
    compared = [
        Measure(
            row=3,
            work=titles[name],
            unit="s",
            ours=Sample(tuple(found[f"ours {name}"])),
            peer=Peer(SDK, Sample(tuple(found[f"official {name}"]))),
            limit=Peer(NEWLINES, Sample(tuple(found[f"newlines {name}"]))),
            ratio=paired(found[f"official {name}"], found[f"ours {name}"]),
            bar=Bar(Kind.RATIO_AT_LEAST, 2.0),
        )
        for name in titles
    ]
    ten = found["ours one"]
    growing = [
        Measure(
            row=3,
            work=f"{size} MB beside 10 MB, for each byte",
            unit="s",
            ours=Sample(tuple(found[f"ours {name}"])),
            ratio=paired([s / times for s in found[f"ours {name}"]], ten),
            bar=Bar(Kind.RATIO_AT_MOST, 1.5),
            note="1 is linear; half as much again is what the rounds differ by anyhow",
        )
        for name, size, times in (("double", 20, 2), ("fourfold", 40, 4))
    ]
    return compared + growing
