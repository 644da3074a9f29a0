"""Run the benchmarks and print them: `make bench`, or `python -m bench [--row N …] [CASE …]`.

Seventeen rows make one table, `bench/results.json` and the page about performance. Other cases have
no row there: they are run by name, and some of them in short behind the whole table. The exit code
is 1 when a bar that is a ratio is not reached.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import importlib.metadata
import inspect
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path

import msgspec

from bench import (
    databases,
    decisions,
    deck,
    docs,
    fleets,
    growth,
    idle_bot,
    journals,
    large,
    piped,
    policy,
    restart,
    sandbox,
    search,
    soak,
    through,
    weight,
)
from bench.rounds import ROUNDS
from bench.table import Machine, Measure, Results, exit_code, plain

RESULTS = Path(__file__).with_name("results.json")
Row = Callable[[Path, int], list[Measure] | Coroutine[None, None, list[Measure]]]

ROWS: dict[int, Row] = {
    1: piped.stream,
    2: piped.mix,
    3: piped.long,
    4: through.burst,
    5: through.fan_out,
    6: through.paced,
    7: through.permission,
    8: journals.append,
    9: journals.reopen,
    10: weight.memory,
    11: weight.starting,
    12: growth.growth,
    13: decisions.decisions,
    14: restart.restarts,
    15: databases.databases,
    16: fleets.fleets,
    17: deck.deck,
}
NAMED_ROWS = {"deck": 17}
"""Rows that can be chosen by a name, too."""

CASES: dict[str, Callable[[Path, int], None]] = {
    "search": search.run_search,
    "policy": policy.run_policy,
    "sandbox": sandbox.run_sandbox,
    "telegram": idle_bot.run_idle_bot,
    "large": large.run_large,
}
"""What has no row: it prints for itself."""

SHORT: dict[str, Callable[[Path], None]] = {
    "search": partial(search.run_search, rounds=1),
}
"""What is measured behind the table when nothing is chosen."""


def chosen_rows(wanted: Sequence[str]) -> list[int]:
    """The rows for `4`, `4,6`, `1-3` or `deck`. Raises `ValueError`."""
    found: list[int] = []
    for part in ",".join(wanted).split(","):
        if part in NAMED_ROWS:
            found.append(NAMED_ROWS[part])
            continue
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    if unknown := set(found) - set(ROWS):
        raise ValueError(f"there is no row {', '.join(map(str, sorted(unknown)))}")
    return sorted(set(found))


def run_row(row: int, rounds: int) -> list[Measure]:
    """Measure one row."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
        found = ROWS[row](Path(place), rounds)
        return asyncio.run(found) if inspect.iscoroutine(found) else list(_given(found))


def _given(found: object) -> list[Measure]:
    assert isinstance(found, list)
    return found


def run_rows(rows: Sequence[int], rounds: int) -> Results:
    """Measure rows, and print each as soon as it is there."""
    before, start = os.getloadavg()[0], time.monotonic()
    measures: list[Measure] = []
    for row in rows:
        found = run_row(row, rounds)
        measures += found
        print(plain(found), flush=True)
    return Results(
        machine=_machine(before),
        rounds=rounds,
        seconds=round(time.monotonic() - start, 1),
        measures=tuple(measures),
    )


def _machine(load_before: float) -> Machine:
    names = ("claude-agent-sdk", "msgspec", "uvicorn", "websockets")
    return Machine(
        when=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        processors=weight.processors(),
        load_before=round(load_before, 2),
        load_after=round(os.getloadavg()[0], 2),
        versions={name: importlib.metadata.version(name) for name in names},
    )


def merged(old: Results | None, new: Results) -> Results:
    """A run of some rows takes the place of these rows in what is kept."""
    if old is None:
        return new
    rows = {measure.row for measure in new.measures}
    kept = [measure for measure in old.measures if measure.row not in rows]
    together = sorted([*kept, *new.measures], key=lambda measure: measure.row)
    return msgspec.structs.replace(new, measures=tuple(together))


def read_results(path: Path) -> Results | None:
    """What an earlier run kept."""
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else None


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for, or all rows; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"one of soak, {', '.join([*NAMED_ROWS, *CASES])}"
    )
    parser.add_argument("--row", action="append", default=[], help="4, or 4,6, or 1-3")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long `soak` takes")
    parser.add_argument("--docs", action="store_true", help="write the page, and measure nothing")
    parser.add_argument("--profile", action="store_true", help="show where the hub's time goes")
    chosen = parser.parse_args(arguments)
    if chosen.docs:
        docs.write(read_results(chosen.results))
        return 0
    if chosen.profile:
        from bench import profiles

        profiles.write()
        return 0
    if "soak" in chosen.cases:  # by itself: it takes an hour
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
            soak.run_soak(Path(place), chosen.minutes)
        return 0
    named = [case for case in chosen.cases if case in CASES]
    rows = [case for case in chosen.cases if case not in CASES] + chosen.row
    try:
        wanted = chosen_rows(rows) if rows else ([] if named else list(ROWS))
    except ValueError as error:
        parser.error(str(error))
    for name in named:
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
            CASES[name](Path(place), chosen.rounds)
    if not wanted:
        return 0
    results = run_rows(wanted, chosen.rounds)
    kept = merged(read_results(chosen.results), results)
    chosen.results.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    print(f"\n{results.seconds:.0f} s, {results.rounds} rounds, load {results.machine.load_before}")
    if not rows:
        for case in SHORT.values():
            with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
                case(Path(place))
    return exit_code(results.measures)


if __name__ == "__main__":
    # Whoever ends us ends what we have started too, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    sys.exit(main(sys.argv[1:]))
