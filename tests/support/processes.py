"""The processes that a test started, so that none outlives it, however the test ends.

A test hands in the id of whatever it starts (`started`); the fixture `no_process_outlives` ends
what is still there, by its id and that of its group, and the children it has. Processes which a
test only learns of (a child of the CLI, say) can be handed in too.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_SECONDS = 5.0


class Processes:
    """A registry of process ids; each is known with its start time, since ids are used again."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def started(self, pid: int) -> int:
        """Remember a process; gives its id back, so that it can stand around an expression."""
        if (born := _born(pid)) is not None:
            self._known[pid] = born
        return pid

    def alive(self) -> list[int]:
        """Those that still run, zombies left out."""
        return [pid for pid, born in self._known.items() if _born(pid) == born]

    def end_all(self) -> list[int]:
        """Kill what is left and its descendants; gives the ids that had to be killed."""
        left = [pid for root in self.alive() for pid in (*_descendants(root), root)]
        for pid in left:
            _kill(pid)
        deadline = time.monotonic() + _SECONDS
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        return left


def running(pid: int) -> bool:
    """Whether a process with that id runs; a zombie does not."""
    return _born(pid) is not None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except (ProcessLookupError, ChildProcessError):
        pass


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name, which may hold blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _born(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[19] if fields and fields[0] not in "ZX" else None


def _descendants(pid: int) -> list[int]:
    """Children first, so that none is left without its parent before it is found."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found[::-1]
