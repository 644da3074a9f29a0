"""A pytest plugin: `--cpu-report=FILE` writes what each test and fixture takes of the processor.

Elapsed time says little on a busy machine, and nothing about who computes. This counts seconds of
the processor: those of the pytest process (with all its threads), and those of the processes below
it, also those that outlive their parent (on Linux, where this process adopts them). Each line of
the file is one test, fixture, collection or worker, in JSON. The end of the run shows the most
expensive ones. The guard for processes that are left behind is off meanwhile: it would find the
adopted ones.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.processes import offspring_seconds

SHOWN = 40
ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of `prctl`."""


class Row(msgspec.Struct):
    """What something took: seconds of the processor here, and in processes below."""

    kind: str
    name: str
    here: float
    below: float

    @property
    def both(self) -> float:
        """All of it."""
        return self.here + self.below


Clock = tuple[float, float]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--cpu-report", metavar="FILE", help="write what each test computes")


def pytest_configure(config: pytest.Config) -> None:
    """Measure only if asked to."""
    if file := config.getoption("--cpu-report"):
        path = Path(config.invocation_params.dir, file)
        if not hasattr(config, "workerinput"):
            path.write_text("")
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
        config.pluginmanager.register(_Meter(path), "cpu-meter")


def clock() -> Clock:
    """Seconds of the processor up to now: here, and below."""
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), below.ru_utime + below.ru_stime + offspring_seconds()


class _Meter:
    """Writes a row for whatever begins and ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _tell(self, kind: str, name: str, since: Clock) -> None:
        here, below = clock()
        row = Row(kind, name, round(here - since[0], 4), round(below - since[1], 4))
        with self._path.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode(row) + b"\n")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """What to find the tests takes, with their imports."""
        since = clock()
        try:
            return (yield)
        finally:
            self._tell("collection", _worker(session.config), since)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """What a test takes, with the fixtures that are set up or torn down for it."""
        since = clock()
        try:
            return (yield)
        finally:
            self._tell("test", item.nodeid, since)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """What to set up a fixture takes; it is a part of what its test takes."""
        since = clock()
        try:
            return (yield)
        finally:
            self._tell("fixture", f"{fixturedef.baseid}::{fixturedef.argname}", since)

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """What the process took from its start."""
        self._tell("process", _worker(config), (0.0, 0.0))

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what takes most."""
        terminalreporter.write_sep("=", "seconds of the processor: all, here, below, times")
        for line in summary(self._path.read_bytes()):
            terminalreporter.write_line(line)


def summary(rows: bytes) -> list[str]:
    """The most expensive folders, files, tests and fixtures, as lines of a table."""
    sums: dict[tuple[str, str], tuple[Row, int]] = {}
    for row in msgspec.json.Decoder(Row).decode_lines(rows):
        for kind, name in _heads(row):
            known, times = sums.get((kind, name), (Row(kind, name, 0.0, 0.0), 0))
            sums[kind, name] = (
                Row(kind, name, known.here + row.here, known.below + row.below),
                (times + 1),
            )
    by_kind: dict[str, list[tuple[Row, int]]] = defaultdict(list)
    for row, times in sums.values():
        by_kind[row.kind].append((row, times))
    lines: list[str] = []
    for kind, found in by_kind.items():
        lines.append(f"--- {kind}")
        found.sort(key=lambda each: -each[0].both)
        lines += [
            f"{row.both:8.2f} {row.here:8.2f} {row.below:8.2f} {times:5}  {row.name}"
            for row, times in found[:SHOWN]
        ]
    return lines


def _heads(row: Row) -> list[tuple[str, str]]:
    """Under which names a row is counted."""
    if row.kind != "test":
        return [(row.kind, row.name)]
    file = row.name.partition("::")[0]
    return [("folder", os.path.dirname(file)), ("file", file), ("test", row.name)]  # noqa: PTH120


def _worker(config: pytest.Config) -> str:
    given: dict[str, Any] = getattr(config, "workerinput", {})
    return str(given.get("workerid", "the first process"))
