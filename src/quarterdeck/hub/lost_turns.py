"""Whether a turn that is open here has ended in the CLI without our hearing of it. Pure.

CLIs up to 2.1.112 that dial lose what they say while their link is down, the result of a turn too.
After such a gap an open turn is in doubt until the CLI says something that belongs to a turn. An
interrupt tells: a CLI in a turn answers it and then ends the turn, an idle one only answers it.
Above is `run`, which ends the turn.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Mutable
from quarterdeck.wire.base import Message
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.messages import User
from quarterdeck.wire.outbound import KeepAlive

SETTLE_MS = 5000
"""How long after its answer to an interrupt a CLI that was in a turn may take to say anything."""


class LostTurn(Mutable):
    """The doubt about the open turn of one run."""

    in_doubt: bool = False
    _over_at: int | None = None

    def link_resumed(self, *, lost: bool, busy: bool) -> None:
        """The CLI is back; `lost`: messages that it wrote meanwhile are lost."""
        self.in_doubt = busy and (lost or self.in_doubt)
        self._over_at = None

    def receive(self, message: Message) -> None:
        """The CLI says something new. Answers and echoes come from an idle CLI too."""
        match message:
            case ControlResponse() | KeepAlive() | User(is_replay=True):
                pass
            case _:
                self.settle()

    def note_interrupt(self, at: int) -> None:
        """The CLI has answered an interrupt, at a time in ms."""
        if self.in_doubt:
            self._over_at = at + SETTLE_MS

    def is_over(self, now: int) -> bool:
        """Whether the turn is over, at a time in ms."""
        return self.in_doubt and self._over_at is not None and now >= self._over_at

    def settle(self) -> None:
        """There is no doubt any more."""
        self.in_doubt = False
        self._over_at = None
