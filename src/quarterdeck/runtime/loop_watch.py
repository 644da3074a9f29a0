"""A watch for the event loop: it logs what held up everybody.

The loop sets a time twenty times a second. A thread reads it, and notes where the loop is when the
time has not been set for too long. The loop logs that as soon as it runs again.

A place alone can mislead: on a busy machine the loop may wait for a processor anywhere. So the log
also says for how much of the time the loop itself worked, and the other threads of the process.
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

from quarterdeck.domain.structs import Value

logger = logging.getLogger(__name__)

BEAT_SECONDS = 0.05
HELD_SECONDS = 0.1
"""The shortest time that is logged."""
LOG_SECONDS = 5.0
"""Between two lines of the log: a busy machine holds up everybody all the time."""
FRAMES = 6


class Hold(Value):
    """The loop was held up, in seconds; and how much of it the loop and other threads worked."""

    seconds: float = 0.0
    worked: float = 0.0
    others: float = 0.0
    place: str = ""


class LoopWatch:
    """The watch of one event loop.

    A hold is noticed from the beat that is late: with a short `beat_seconds` it is measured more
    exactly, and the watch itself costs more.
    """

    def __init__(
        self, *, held_seconds: float = HELD_SECONDS, beat_seconds: float = BEAT_SECONDS
    ) -> None:
        self.held = 0
        """How often the loop was held up."""
        self.longest = Hold()
        self.most_worked = Hold()
        """The one in which the loop itself worked longest."""
        self._beat_seconds = beat_seconds
        self._held_seconds = held_seconds
        self._beat = time.monotonic()
        self._worked = (0.0, 0.0)
        """Processor time of the loop and of the whole process, at the last beat."""
        self._place = ""
        self._logged = -LOG_SECONDS
        self._thread_id = threading.get_ident()
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Watch this event loop while the block runs."""
        loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._beat = time.monotonic()
        self._worked = (time.thread_time(), time.process_time())
        self._timer = loop.call_later(self._beat_seconds, self._tick, loop)
        thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._timer.cancel()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now, worked = time.monotonic(), (time.thread_time(), time.process_time())
        late = now - self._beat - self._beat_seconds
        if late >= self._held_seconds:
            own = worked[0] - self._worked[0]
            others = max(0.0, worked[1] - self._worked[1] - own)
            self._note(Hold(seconds=late, worked=own, others=others, place=self._place), now)
        self._place = ""
        self._beat, self._worked = now, worked
        self._timer = loop.call_later(self._beat_seconds, self._tick, loop)

    def _note(self, hold: Hold, now: float) -> None:
        self.held += 1
        if hold.seconds > self.longest.seconds:
            self.longest = hold
        if hold.worked > self.most_worked.worked:
            self.most_worked = hold
        if now - self._logged >= LOG_SECONDS:
            self._logged = now
            logger.warning(
                "the event loop was held up for %.0f ms (it worked %.0f ms, other threads"
                " %.0f ms): %s",
                hold.seconds * 1000,
                hold.worked * 1000,
                hold.others * 1000,
                hold.place or "an unknown place",
            )

    def _watch(self) -> None:
        allowed = self._beat_seconds + self._held_seconds
        while not self._ended.wait(self._beat_seconds):
            if self._place or time.monotonic() - self._beat < allowed:
                continue
            frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - its documented use
            if frame is not None:
                stack = traceback.extract_stack(frame)[-FRAMES:]
                self._place = " < ".join(
                    f"{each.name} ({'/'.join(each.filename.split('/')[-2:])}:{each.lineno})"
                    for each in reversed(stack)
                )
