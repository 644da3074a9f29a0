"""The processes that a test started, so that none outlives it, however the test ends.

Two ways lead here. A test hands in the id of a process that it starts or learns of (`started`), and
what still runs at its end is killed. And whatever descends from the test run itself and was not
there before the test is found without being handed in: that test left something behind, and fails.

All is done by id and start time, since ids are used again. Where there is no /proc, only what was
handed in is looked after.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

_SECONDS = 5.0


class Born(msgspec.Struct, frozen=True):
    """A process for ever: its id, and when it was started."""

    pid: int
    at: str


class Processes:
    """A registry of processes."""

    def __init__(self) -> None:
        self._known: dict[int, Born] = {}

    def started(self, pid: int) -> int:
        """Remember a process; gives its id back, so that it can stand around an expression."""
        self._known[pid] = Born(pid, _born(pid) or "")
        return pid

    def alive(self) -> list[int]:
        """Those that still run; a zombie does not."""
        return [pid for pid, known in self._known.items() if still(known)]

    def end_all(self) -> list[int]:
        """Kill what is left and its descendants; gives the ids that had to be killed."""
        left = [pid for root in self.alive() for pid in (*_descendants(root), root)]
        kill_all(left)
        return left


def running(pid: int) -> bool:
    """Whether a process with that id runs; a zombie does not."""
    return _born(pid) is not None


def still(known: Born) -> bool:
    """Whether it is this process that runs, and not another that got its id."""
    return _born(known.pid) == known.at


def offspring(without: Collection[int] = ()) -> frozenset[Born]:
    """Everything that descends from this test run and runs now, but for these and their own."""
    spared = {*without, *(pid for root in without for pid in _descendants(root))}
    pids = [pid for pid in _descendants(os.getpid()) if pid not in spared]
    pairs = [(pid, _born(pid)) for pid in pids]
    return frozenset(Born(pid, at) for pid, at in pairs if at is not None)


def offspring_seconds() -> float:
    """What all that descends from this process took of the processor, with what it waited for."""
    return sum(
        sum(map(int, fields[11:15])) for pid in _descendants(os.getpid()) if (fields := _stat(pid))
    ) / os.sysconf("SC_CLK_TCK")


def left_behind(
    before: frozenset[Born], patience: float = 1.0, without: Collection[int] = ()
) -> list[int]:
    """What came since `before` and does not go within a moment; it is killed."""
    deadline = time.monotonic() + patience
    while new := offspring(without) - before:
        if time.monotonic() > deadline:
            kill_all([process.pid for process in new])
            break
        time.sleep(0.01)
    return sorted(process.pid for process in new)


def kill_all(pids: list[int]) -> None:
    """Kill each by its id, and wait until it is gone."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + _SECONDS
    while any(running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name, which may hold blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _born(pid: int) -> str | None:
    fields = _stat(pid)
    if fields:
        return fields[19] if fields[0] not in "ZX" else None
    if not Path("/proc/self/stat").exists():
        return _born_without_proc(pid)
    return None


def _born_without_proc(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    return ""


def _descendants(pid: int) -> list[int]:
    """Children first, so that none is left without its parent before it is found."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found[::-1]


def _children(pid: int) -> list[int]:
    """The kernel's own list: to look through all of /proc before and after each test takes long."""
    try:
        tasks = [task.name for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    found: list[int] = []
    for task in tasks:
        with suppress(OSError):  # a thread may end meanwhile
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found
