"""Time as an object: what a program waits by, and what a test can let run faster.

A program gets a `Clock` and uses nothing else for its pauses and limits. A test gives it one that
runs a hundred times as fast, and gives the same one to the server at the other end, so that both
agree about what a second is.
"""

from __future__ import annotations

import time

import anyio


class Clock:
    """Seconds since 1970 that never go back while the program runs, `speed` times as fast.

    Safe to use from several threads, as long as each waits on events of its own loop.
    """

    def __init__(self, *, speed: float = 1.0) -> None:
        self.speed = speed
        self._origin = time.time()
        self._began = time.monotonic()

    def now(self) -> float:
        """The time, in seconds of this clock."""
        return self._origin + (time.monotonic() - self._began) * self.speed

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await anyio.sleep(max(seconds, 0.0) / self.speed)

    async def wait(self, event: anyio.Event, seconds: float | None = None) -> bool:
        """Wait for the event, at most that long; whether it came. None: without a limit."""
        if seconds is None:
            await event.wait()
            return True
        with anyio.move_on_after(max(seconds, 0.0) / self.speed):
            await event.wait()
        return event.is_set()
