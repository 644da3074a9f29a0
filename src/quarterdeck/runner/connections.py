"""The connections of a run through its sandbox's proxy, merged for the audit log.

Owns what is reported at once and what is counted first: an agent that repeats a connection a
thousand times makes a few entries. The proxy is above and reports each; a `Run` takes the entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from quarterdeck.domain.structs import Value

REPEAT_SECONDS = 60.0
"""Repetitions within this time are counted and reported as one."""
MOST_HOSTS = 500
"""Different hosts of a run that are reported by name."""
OTHERS = "*"
"""Stands for all hosts after those."""


class Entry(Value):
    """Connections to a host, and whether they were allowed."""

    host: str
    port: int
    allowed: bool
    count: int = 1


class _Seen(Struct):
    at: float
    waiting: int = 0


class ConnectionLog:
    """The connections of one run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, int, bool], _Seen] = {}
        self._ready: list[Entry] = []
        self._listener: Callable[[], None] | None = None

    def listen(self, listener: Callable[[], None]) -> None:
        """Have `listener` called when there is something to `take`."""
        self._listener = listener
        if self._ready:
            listener()

    def note(self, host: str, port: int, *, allowed: bool) -> None:
        """A connection was made, or refused."""
        key = (host, port, allowed)
        if key not in self._seen and len(self._seen) >= MOST_HOSTS:
            key = (OTHERS, 0, allowed)
        now = self._clock()
        seen = self._seen.get(key)
        if seen is not None and now - seen.at < REPEAT_SECONDS:
            seen.waiting += 1
            return
        count = 1 + (seen.waiting if seen is not None else 0)
        self._seen[key] = _Seen(at=now)
        self._report(key, count)

    def finish(self) -> None:
        """The run has ended: report what was only counted."""
        for key, seen in self._seen.items():
            if seen.waiting:
                self._report(key, seen.waiting)
                seen.waiting = 0

    def take(self) -> list[Entry]:
        """The entries that are to be reported now. Each is given once."""
        ready, self._ready = self._ready, []
        return ready

    def _report(self, key: tuple[str, int, bool], count: int) -> None:
        host, port, allowed = key
        self._ready.append(Entry(host=host, port=port, allowed=allowed, count=count))
        if self._listener is not None:
            self._listener()
