"""A watch for the event loop: it logs what held up everybody.

The loop sets a time twenty times a second. A thread reads it, and notes where the loop is when the
time has not been set for too long. The loop logs that as soon as it runs again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

logger = logging.getLogger(__name__)

BEAT_SECONDS = 0.05
HELD_SECONDS = 0.1
"""The shortest time that is logged."""
LOG_SECONDS = 5.0
"""Between two lines of the log: a busy machine holds up everybody all the time."""
FRAMES = 6


class LoopWatch:
    """The watch of one event loop."""

    def __init__(self, *, held_seconds: float = HELD_SECONDS) -> None:
        self.held = 0
        """How often the loop was held up."""
        self.longest = 0.0
        self._held_seconds = held_seconds
        self._beat = time.monotonic()
        self._place = ""
        self._logged = -LOG_SECONDS
        self._thread_id = threading.get_ident()
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch this event loop while the block runs."""
        loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._beat = time.monotonic()
        self._timer = loop.call_later(BEAT_SECONDS, self._tick, loop)
        thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._timer.cancel()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        late = now - self._beat - BEAT_SECONDS
        if late >= self._held_seconds:
            self.held += 1
            self.longest = max(self.longest, late)
            if now - self._logged >= LOG_SECONDS:
                self._logged = now
                where = self._place or "an unknown place"
                logger.warning("the event loop was held up for %.0f ms: %s", late * 1000, where)
        self._place = ""
        self._beat = now
        self._timer = loop.call_later(BEAT_SECONDS, self._tick, loop)

    def _watch(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            if self._place or time.monotonic() - self._beat < BEAT_SECONDS + self._held_seconds:
                continue
            frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - its documented use
            if frame is not None:
                stack = traceback.extract_stack(frame)[-FRAMES:]
                self._place = " < ".join(
                    f"{each.name} ({each.filename.rpartition('/')[2]}:{each.lineno})"
                    for each in reversed(stack)
                )
