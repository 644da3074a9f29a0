"""Ending processes: one of ours at once, and those that a killed runner left behind.

Below the `Runner` and its runs, above `runtime.processes`. It knows a process of ours by its
descent, by the mark that its run gave it, or by its pid and start time; it touches no other.
`SubprocessLink` ends what can be ended in good order.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Iterable

from quarterdeck.runner.home import RunRecord
from quarterdeck.runtime import processes
from quarterdeck.runtime.processes import ProcessId

log = logging.getLogger("quarterdeck.runner")

STEP_SECONDS = 2.0
"""After each signal. A CLI needs up to 1.7 s to end its shells."""


def child(pid: int) -> ProcessId | None:
    """A child of ours by its time of birth; None when it is gone, whoever has its number now."""
    found = (each for each in processes.descendants(os.getpid()) if each.pid == pid)
    return next(found, None)


def kill_child(pid: int) -> None:
    """Kill a child of ours and all that descends from it. Blocks for some milliseconds."""
    if (root := child(pid)) is not None:
        for process in (root, *processes.descendants(pid)):
            processes.send_signal(process, signal.SIGKILL)


def end_leftovers(left: Iterable[RunRecord], step: float = STEP_SECONDS) -> int:
    """End every process of these runs, in bounded time; gives their number. Blocks."""
    left = list(left)
    family = _family(left)
    found = set(family)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in family:
            processes.send_signal(process, number)
        deadline = time.monotonic() + step
        while processes.still_alive(family) and time.monotonic() < deadline:
            time.sleep(0.02)
        # Look anew: a shell may have started another in between.
        family = processes.still_alive(found | _family(left))
        found |= family
    if found:
        log.warning("ended %d processes that an earlier runner left", len(found))
    if family:
        log.error("could not end %s", sorted(process.pid for process in family))
    return len(found)


def _family(left: Iterable[RunRecord]) -> frozenset[ProcessId]:
    found: set[ProcessId] = set()
    for record in left:
        found |= processes.with_variable(record.mark)
        if sys.platform != "linux" and record.born:
            # Where no environment can be read: the process itself and, while it lives, its own.
            root = ProcessId(record.pid, record.born)
            if processes.still_alive([root]):
                found |= {root, *processes.descendants(record.pid)}
    return frozenset(found)
