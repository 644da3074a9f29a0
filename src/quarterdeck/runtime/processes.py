"""The descendants of a process, so that none outlives it.

Owns finding and signalling them. `SubprocessLink` and the runner use it. It does not know why a
process should end.

The CLI starts each shell in a new session, so a signal to the CLI's process group does not reach
it, and it survives the CLI. Two ways find such processes: by descent, while their parents are
alive, and by a variable in the environment, which they inherit and keep when the parent is gone
(Linux only). A process is identified by its number and its start time, because numbers are reused.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

_PS_SECONDS = 5.0
_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class ProcessId(msgspec.Struct, frozen=True):
    """One process, not to be mistaken for a later one with the same number."""

    pid: int
    started: str


class _Row(msgspec.Struct, frozen=True):
    """A line of the process table; a zombie is dead and only waits to be counted."""

    id: ProcessId
    parent: int
    zombie: bool


def descendants(root: int) -> frozenset[ProcessId]:
    """Every living process that `root` started, and those that they started, without `root`."""
    rows = list(_table())
    children: dict[int, list[_Row]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    found: set[ProcessId] = set()
    waiting = [root]
    while waiting:
        for row in children.get(waiting.pop(), ()):
            if row.id not in found and row.id.pid != root:
                waiting.append(row.id.pid)
                if not row.zombie:
                    found.add(row.id)
    return frozenset(found)


def child_of(parent: int, pid: int) -> ProcessId | None:
    """The process with this number, if it is a living child of `parent`."""
    if sys.platform == "linux":
        row = _row(pid)
    else:
        row = next((each for each in _table() if each.id.pid == pid), None)
    return row.id if row is not None and row.parent == parent and not row.zombie else None


def with_variable(mark: str) -> frozenset[ProcessId]:
    """Every living process whose environment has the variable `mark`, except this one."""
    if sys.platform != "linux":
        return frozenset()
    needle = f"\0{mark}=".encode()
    found: set[ProcessId] = set()
    for pid in _numbers():
        # A process may end while we look, or not be ours to look into.
        with suppress(OSError):
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            row = _row(pid) if needle in b"\0" + environ and pid != os.getpid() else None
            if row is not None and not row.zombie:
                found.add(row.id)
    return frozenset(found)


def still_alive(processes: Iterable[ProcessId]) -> frozenset[ProcessId]:
    """Those of `processes` that still run."""
    wanted = frozenset(processes)
    if sys.platform == "linux":
        rows = [row for process in wanted if (row := _row(process.pid)) is not None]
    else:
        rows = list(_table()) if wanted else []
    return wanted & {row.id for row in rows if not row.zombie}


def send_signal(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal to exactly that process; nothing happens when it is gone or not ours."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "linux":
            # The descriptor pins the process: the process that was checked gets the signal.
            handle = os.pidfd_open(process.pid)
            try:
                if still_alive([process]):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
        elif still_alive([process]):
            os.kill(process.pid, number)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent is killed. Called between fork and exec."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _table() -> Iterator[_Row]:
    if sys.platform == "linux":
        yield from (row for pid in _numbers() if (row := _row(pid)) is not None)
    else:
        yield from _ps()


def _numbers() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  (names)


def _row(pid: int) -> _Row | None:
    """Read /proc/PID/stat. The command in it may contain blanks and brackets, so cut after it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent, *rest = stat.rpartition(")")[2].split()
    return _Row(ProcessId(pid, rest[17]), int(parent), state in "ZX")


def _ps() -> Iterator[_Row]:
    """The process table on macOS and the BSDs."""
    try:
        done = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,stat=,lstart="],
            capture_output=True,
            text=True,
            timeout=_PS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in done.stdout.splitlines():
        match line.split(maxsplit=3):
            case [pid, parent, state, started]:
                yield _Row(ProcessId(int(pid), started), int(parent), state.startswith("Z"))
