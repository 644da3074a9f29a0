"""Whether a key that was pressed on a question was meant for it. Pure, but for the clock.

A person may be typing when something new appears under the cursor, or hold a key down. So a key
counts only when nothing has moved and no key was pressed for a moment; and what allows more than
this one call is done by the second press of its key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum

SETTLE_SECONDS = 0.4
"""A person cannot have read what was shown for less than this."""


class Press(Enum):
    """What a key does."""

    EARLY = "early"
    """Nothing: it came too early to be meant."""
    ARMED = "armed"
    """Nothing yet: the same key once more does it."""
    GO = "go"
    """What it says."""


class Hands:
    """The hands of a person on one question."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, settle: float = SETTLE_SECONDS
    ) -> None:
        self._clock = clock
        self._settle = settle
        self._quiet_since = clock()
        self.armed: str | None = None
        """The key whose second press counts."""

    @property
    def ready(self) -> bool:
        """Whether a key would count now."""
        return self._clock() - self._quiet_since >= self._settle

    def note_move(self) -> None:
        """Something has moved: the focus, the question, or what is above it."""
        self._quiet_since = self._clock()
        self.armed = None

    def press(self, key: str, *, lasting: bool = False) -> Press:
        """A key was pressed. `lasting`: it allows more than this one call."""
        early, now = not self.ready, self._clock()
        if early:
            # A key that is held down never gets through.
            self._quiet_since = now
            return Press.EARLY
        if not lasting:
            self.armed = None
            return Press.GO
        self._quiet_since = now
        if self.armed == key:
            self.armed = None
            return Press.GO
        self.armed = key
        return Press.ARMED

    def disarm(self) -> bool:
        """Forget the first press of a key; says whether there was one."""
        was, self.armed = self.armed is not None, None
        return was
