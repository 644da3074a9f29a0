"""A rest for plans: one that was sent back for revision may not come again at once.

A model that is told to improve its plan sometimes just asks again. With a cooldown such a plan is
sent back by itself, for a while that grows with each revision.
"""

from __future__ import annotations

import math

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Mutable
from quarterdeck.protocol.commands import Answer, PlanAnswer

LONGEST = 4
"""The longest rest, as a multiple of the first."""

_decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


class Cooldown(Mutable):
    """Keeps the time of one session's plans. `base` is the first rest in seconds; None is none."""

    base: float | None
    _revisions: int = 0
    _since: int | None = None

    def note_answer(self, answer: Raw, at: int) -> None:
        """A question was answered, at a time in ms: revision begins a rest, approval ends it."""
        try:
            found = _decoder.decode(answer)
        except msgspec.DecodeError:
            return
        match found:
            case PlanAnswer(choice="revise"):
                self._revisions += 1
                self._since = at
            case PlanAnswer():
                self._revisions = 0
                self._since = None
            case _:
                pass

    def wait(self, now: int) -> int:
        """How many seconds are left at this time; 0 lets a plan through."""
        if self.base is None or self._since is None:
            return 0
        rest = self.base * min(self._revisions, LONGEST)
        return max(math.ceil(rest - (now - self._since) / 1000), 0)

    def note_refusal(self, at: int) -> None:
        """A plan came too soon, at a time in ms: the rest begins again."""
        self._since = at
