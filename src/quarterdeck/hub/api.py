"""What a front may ask of the hub: one small protocol.

Fronts (HTTP, chat, terminal) know this and the words of `domain`, and nothing else of the hub.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from quarterdeck.domain.structs import Value
from quarterdeck.journal.base import Follower, Stored
from quarterdeck.journal.usage import UsageBy, UsageReport
from quarterdeck.journal.views import AskView, SessionView
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.views import Deltas as Deltas
from quarterdeck.protocol.views import MachineView as MachineView

if TYPE_CHECKING:
    from quarterdeck.hub.permissions.service import PolicyService
    from quarterdeck.hub.workers import Workers


class Piece(Value):
    """A line of a CLI that is not journalled: a piece of a message that is being generated."""

    session: str
    run: str
    number: int
    """Counts the lines of its run, as `Said` does."""
    after: int
    """The number of the last journalled line before it."""
    line: bytes


class HubApi(Protocol):
    """Commands in, events out."""

    @property
    def epoch(self) -> str:
        """Names the journal: sequence numbers of another epoch mean nothing."""

    @property
    def position(self) -> int:
        """The position of the last event; 0 when there is none."""

    @property
    def policy(self) -> PolicyService:
        """What is decided about tool calls without a person, and what was."""

    @property
    def workers(self) -> Workers:
        """Processes for work that may take long."""

    async def submit(self, command: AnyCommand) -> Outcome:
        """Do what a command asks for.

        Raises `NotFound`, `Conflict`, `Forbidden`, `UsageError`, or what the CLI made of it:
        `RequestError`, `LinkError`.
        """

    async def sessions(
        self, *, after: str | None = None, limit: int = 100, archived: bool = False
    ) -> list[SessionView]:
        """Sessions, newest first, a page at a time: `after` is the last id of the page before."""

    async def session(self, session: str) -> SessionView:
        """One session. Raises `NotFound`."""

    def view(self, session: str) -> SessionView | None:
        """A session without a read of the journal; None if it is not in memory.

        It may lack the newest events: `head` is the last one that is folded.
        """

    async def events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Stored]:
        """A session's history, a page at a time. Raises `NotFound`."""

    async def asks(self, *, session: str | None = None, ended: bool = False) -> list[AskView]:
        """The open questions, oldest first.

        With `ended` also those whose agent has ended: an answer resumes the session.
        """

    async def audit(
        self, *, session: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[Stored]:
        """Who or what let each call pass, or did not, in the order in which it happened."""

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> UsageReport:
        """What was used from `since` on and before `until`, both in ms since 1970."""

    async def machines(self) -> list[MachineView]:
        """The machines."""

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen, of these sessions after these numbers.

        Without `cursors`: of all sessions, after the position `after`, or from now on.
        """

    def live(self, listener: Callable[[Deltas], None]) -> Callable[[], None]:
        """Have `listener` called, in the loop and at once, with each delta from now on.

        It must be quick and must not raise. Call what is given back to have it end.
        """

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        """The text so far of the blocks that are still being made: all that `live` gave of them.

        A block is left out as soon as its whole message is on its way into the journal.
        """

    def pieces(self, listener: Callable[[Piece], None]) -> Callable[[], None]:
        """Have `listener` called, in the loop and at once, with each line that is not journalled.

        It must be quick and must not raise. A piece may be given twice, with the same number. It
        may come before the journalled lines that precede it: see `Piece.after`. Call what is given
        back to have it end.
        """
