"""Long polling: one poller at a time. A newer one ends the older one with a 409."""

from __future__ import annotations

import anyio

from quarterdeck.runtime.clock import Clock
from quarterdeck.testing.telegram.objects import Update
from quarterdeck.testing.telegram.params import Params
from quarterdeck.testing.telegram.refusal import Refusal
from quarterdeck.testing.telegram.world import RawUpdate, World

LONGEST_POLL = 50
MOST_UPDATES = 100


class _Poll:
    def __init__(self) -> None:
        self.changed = anyio.Event()
        self.ended = False


class Poller:
    """Answers calls for updates."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._current: _Poll | None = None
        self._closed = False

    def wake(self) -> None:
        """There is a new update."""
        if self._current is not None:
            self._current.changed.set()

    def close(self) -> None:
        """End the call that waits."""
        self._closed = True
        self.wake()

    async def poll(self, params: Params) -> list[Update | RawUpdate]:
        """The updates from the offset on; waits for one if there is none."""
        mine = self._take_over()
        try:
            allowed = params.get("allowed_updates", list[str])
            if allowed is not None:
                self._world.allowed = frozenset(allowed) or None
            offset = params.number("offset")
            if offset:
                self._world.confirm(offset)
            limit = min(max(params.number("limit") or MOST_UPDATES, 1), MOST_UPDATES)
            seconds = min(params.number("timeout") or 0, LONGEST_POLL)
            end = self._clock.now() + seconds
            while not (found := self._world.pending_updates()[:limit]) and not self._closed:
                left = end - self._clock.now()
                if left <= 0:
                    break
                mine.changed = anyio.Event()
                await self._clock.wait(mine.changed, left)
                if mine.ended:
                    raise _conflict()
            return found
        finally:
            if self._current is mine:
                self._current = None

    def _take_over(self) -> _Poll:
        if self._current is not None:
            self._current.ended = True
            self._current.changed.set()
        self._current = _Poll()
        return self._current


def _conflict() -> Refusal:
    return Refusal(
        409,
        "Conflict: terminated by other getUpdates request;"
        " make sure that only one bot instance is running",
    )
