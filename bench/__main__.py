"""Run the benchmarks and print them: `make bench`, or `python -m bench [--rounds N] [CASE …]`.

Each round measures every peer once, in a fresh process and in changing order, on the same lines
from the same program. What counts is the ratio of two peers within one round, and of those ratios
the median: the machines that this runs on are shared, and their speed changes from one minute to
the next.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import lines
from bench.policy import run_policy
from bench.search import run_search

STREAM, MIX = 200_000, 100_000
LONG = 10_000_000
ROUNDS = 5


class Case:
    """Some lines, who is measured on them, and how much faster we mean to be."""

    def __init__(
        self, title: str, make: Callable[[], list[str]], peers: tuple[str, ...], goal: float
    ) -> None:
        self.title = title
        self.make = make
        self.peers = peers
        self.goal = goal


CASES = {
    "stream": Case(
        f"{STREAM:,} stream events",
        lambda: lines.stream_lines(STREAM),
        ("ours", "ours_typed", "official"),
        8.0,
    ),
    "mix": Case(
        f"{MIX:,} lines of a busy session, 85 % stream events",
        lambda: lines.mixed_lines(MIX),
        ("ours", "ours_typed", "official"),
        4.0,
    ),
    "long": Case(
        "one line of 10 MB",
        lambda: lines.long_line(LONG),
        ("ours", "official"),
        2.0,
    ),
}


def measure(peer: str, file: Path) -> float:
    """Seconds that a peer takes for a file, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker", peer, str(file)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    seconds, messages = json.loads(done.stdout)
    if messages < 2:
        raise RuntimeError(f"{peer} saw {messages} messages only; what it measured means nothing")
    return float(seconds)


def rounds_of(files: dict[str, tuple[str, Path]], rounds: int) -> dict[str, list[float]]:
    """Measure each entry (a name → who, and which file) once a round, in changing order."""
    seconds: dict[str, list[float]] = {name: [] for name in files}
    order = list(files)
    for number in range(rounds):
        random.Random(number).shuffle(order)
        for name in order:
            peer, file = files[name]
            seconds[name].append(measure(peer, file))
    return seconds


def ratios(slow: list[float], fast: list[float]) -> str:
    """The median of the paired ratios, and their range."""
    found = [a / b for a, b in zip(slow, fast, strict=True)]
    return f"{statistics.median(found):5.1f} × ({min(found):.1f} to {max(found):.1f})"


def run_case(case: Case, folder: Path, rounds: int) -> None:
    """Measure and print one case."""
    file = folder / "lines.ndjson"
    lines.write(case.make(), file)
    seconds = rounds_of({peer: (peer, file) for peer in case.peers}, rounds)
    print(f"\n{case.title}: {file.stat().st_size / 1e6:.0f} MB, {rounds} rounds")
    for peer in case.peers:
        print(f"  {NAMES[peer]:42} {statistics.median(seconds[peer]):8.3f} s")
    for peer in case.peers[:-1]:
        goal = f", wanted {case.goal:g} ×" if peer == "ours" else ""
        print(f"  {NAMES[peer]} is faster by {ratios(seconds['official'], seconds[peer])}{goal}")


def run_linear(folder: Path, rounds: int) -> None:
    """Show that a line costs in proportion to its size."""
    sizes = (1, 2, 4)
    files = {}
    for times in sizes:
        file = folder / f"long-{times}.ndjson"
        lines.write(lines.long_line(times * LONG), file)
        files[str(times)] = ("ours", file)
    seconds = rounds_of(files, rounds)
    print(f"\none line of 10, 20 and 40 MB, {rounds} rounds (linear is 2 × and 4 ×)")
    for times in sizes[1:]:
        print(f"  {times * 10} MB takes {ratios(seconds[str(times)], seconds['1'])} of 10 MB")


OTHERS = {"linear": run_linear, "search": run_search, "policy": run_policy}
"""What is not measured against a peer."""

NAMES = {
    "ours": "Quarterdeck",
    "ours_typed": "Quarterdeck, every body decoded",
    "official": "claude-agent-sdk",
}


def main() -> None:
    """Run what was asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("cases", nargs="*", choices=[*CASES, *OTHERS, []])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    wanted = chosen.cases or [*CASES, *OTHERS]
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
        for name in wanted:
            if name in OTHERS:
                OTHERS[name](Path(place), chosen.rounds)
            else:
                run_case(CASES[name], Path(place), chosen.rounds)


main()
