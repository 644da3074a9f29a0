"""Locks on files: who holds one lives, for the system takes it from the dead."""

from __future__ import annotations

import fcntl
import time

LOCK_SECONDS = 2.0
"""Whoever only looks whether a lock is held has it for an instant: longer than that is waited."""


def lock_file(file: int, kind: int, *, seconds: float = LOCK_SECONDS) -> bool:
    """Lock an open file, `LOCK_EX` or `LOCK_SH`; says whether it could be had in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True
