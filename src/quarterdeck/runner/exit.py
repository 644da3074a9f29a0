"""Ending processes: a child at once, and the processes that a killed runner left.

The `Runner` and its runs are above; `runtime.processes` is below. It identifies a process by its
descent, by the mark of its run, or by its pid and start time, and touches no other. An orderly end
is the business of `SubprocessLink`.
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
"""The wait after each signal. A CLI needs up to 1.7 s to end its shells."""


def child(pid: int) -> ProcessId | None:
    """A child of this process with its start time; None if it is gone and the pid may be reused."""
    return processes.child_of(os.getpid(), pid)


def kill_child(pid: int) -> None:
    """Kill a child and all its descendants. Blocks for some milliseconds."""
    if (root := child(pid)) is not None:
        for process in (root, *processes.descendants(pid)):
            processes.send_signal(process, signal.SIGKILL)


def end_leftovers(left: Iterable[RunRecord], step: float = STEP_SECONDS) -> int:
    """End every process of these runs, in bounded time; returns their number. Blocks."""
    left = list(left)
    family = _family(left)
    found = set(family)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in family:
            processes.send_signal(process, number)
        deadline = time.monotonic() + step
        while processes.still_alive(family) and time.monotonic() < deadline:
            time.sleep(0.02)
        # Look again: a shell may have started another process meanwhile.
        family = processes.still_alive(found | _family(left))
        found |= family
    if found:
        log.warning("ended %d processes of an earlier runner", len(found))
    if family:
        log.error("could not end %s", sorted(process.pid for process in family))
    return len(found)


def _family(left: Iterable[RunRecord]) -> frozenset[ProcessId]:
    found: set[ProcessId] = set()
    for record in left:
        found |= processes.with_variable(record.mark)
        if sys.platform != "linux" and record.born:
            # Where no environment can be read: the process itself and its living descendants.
            root = ProcessId(record.pid, record.born)
            if processes.still_alive([root]):
                found |= {root, *processes.descendants(record.pid)}
    return frozenset(found)
