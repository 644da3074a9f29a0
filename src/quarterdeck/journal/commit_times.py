"""The duration of commits, as a histogram.

Written by the writer's thread, read by the event loop. Numbers that are read during an update may
differ by one, which is harmless.
"""

from __future__ import annotations

from bisect import bisect_left

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds, from a fast disk to a failing one."""


class CommitTimes:
    """The histogram."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        """The sum of all durations."""

    def add(self, seconds: float) -> None:
        """Add a commit."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """The number of commits."""
        return sum(self._counts)

    def upto(self) -> list[tuple[float, int]]:
        """For each bound the number of commits that took no longer."""
        found: list[tuple[float, int]] = []
        total = 0
        for bound, count in zip(BOUNDS, self._counts, strict=False):
            total += count
            found.append((bound, total))
        return found
