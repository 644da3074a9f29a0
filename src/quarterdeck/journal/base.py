"""What a journal can do, whichever engine keeps it.

The journal is the append-only truth: every event of every session, numbered per session without
gaps, and in one order over all. The hub appends; every front follows. Engines are `memory` and
`sqlite`; all of them pass the suite in `quarterdeck.testing.contracts.journal`.

A journal knows events, and never what a line of the CLI means.

Four protocols, since most users need one of them: `Log` is the events, `Overview` what they come
to, `Usage` what was used, `Chain` what shows that nobody has changed the audit log. A `Journal` is
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from quarterdeck.domain.structs import Value
from quarterdeck.journal.chain import Link
from quarterdeck.journal.stored import RawEvents, Stored
from quarterdeck.journal.usage import LimitState, UsageBy, UsageRow
from quarterdeck.journal.views import AskView, SessionView
from quarterdeck.protocol.events import Event

__all__ = [
    "AskRecord",
    "Chain",
    "Follower",
    "Journal",
    "Log",
    "Overview",
    "RawEvents",
    "Stored",
    "Usage",
]

PAGE_EVENTS = 1000
"""How many events a page has when nobody says otherwise."""


class Follower(Protocol):
    """Events as they happen: `async for batch in journal.follow(…)`.

    First what is in the journal already, then what is appended, without a gap and without a double.
    It ends when the journal is closed. A follower that reads slowly holds nothing up and holds
    nothing in memory: it reads the journal at its own speed. A cancelled wait loses nothing. One
    task reads a follower at a time. It needs no closing.
    """

    def __aiter__(self) -> Self:
        """Itself."""

    async def __anext__(self) -> list[Stored]:
        """The next events, at least one. A session's are in their order."""

    @property
    def behind(self) -> bool:
        """Whether there are events to be given at once."""

    async def next_text(self) -> list[Stored] | RawEvents:
        """As above, for whoever passes events on; and none of them at the end.

        What has to be read from the journal may come as text: nobody decodes it then.
        """


class AskRecord(Value):
    """A question that was once open, and what settled it, if anything has."""

    ask: AskView
    settled: Stored | None = None
    """An `AskAnswered`, an `AskWithdrawn`, or the `RunEnded` of its run."""


class Log(Protocol):
    """The events, in their order."""

    async def append(self, session: str, events: Sequence[Event]) -> list[Stored]:
        """Store these events of a session, all of them or none. What this returns is durable.

        Raises `UsageError` for an event that is no valid JSON, `NotFound` for a session that was
        deleted, `JournalError` when it cannot be written. An append that is cancelled may still
        come to be stored, whole: followers will tell.
        """

    async def read(self, session: str, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Stored]:
        """The events of a session that follow the number `after`, a page at a time.

        A page may have fewer events than `limit`, if they are large. An empty one is the end.
        """

    async def passage(self, session: str, *, after: int = 0) -> RawEvents | None:
        """The events of a session that follow the number `after`, as text; a frame of them.

        None when there are none, or the first is one that has to be read.
        """

    async def head(self, session: str) -> int:
        """The number of the session's last event; 0 when there is none."""

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen, of these sessions, each after its number; a number is 0 for all.

        Without `cursors`: of all sessions, after the position `after`, or from now on. Raises
        `UsageError` for a number that lies beyond the last event.
        """


class Overview(Protocol):
    """What the events come to; always up to date with what was appended."""

    async def summaries(
        self, *, after: str | None = None, limit: int = 100, archived: bool | None = False
    ) -> list[SessionView]:
        """The sessions, newest first, a page at a time: `after` is the last id of the page before.

        `archived` None gives those that are put away too, True only those. An empty page is the
        end.
        """

    async def summary(self, session: str) -> SessionView | None:
        """One session; None when there is none, or none any more."""

    async def sizes(self) -> dict[str, int]:
        """How many bytes the events of each session have. It looks at every event."""

    async def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""

    async def find_ask(self, ask: str) -> AskRecord | None:
        """A question by its id, whether it is open or not."""

    async def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had a prompt with this id; also one that its view forgot."""

    async def audit(
        self, *, after: int = 0, limit: int = PAGE_EVENTS, session: str | None = None
    ) -> list[Stored]:
        """`Decided` and `AskAnswered` after the position `after`, in the order of all events."""


class Usage(Protocol):
    """What all sessions have used together; always up to date with what was appended."""

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> list[UsageRow]:
        """What was used from `since` on and before `until`, both in ms since 1970, by their order.

        Both are taken up to the next quarter of an hour. What a deleted session used is among it.
        """

    async def limits(self) -> list[LimitState]:
        """Where each account stands, as the CLIs have told it last."""


class Chain(Protocol):
    """The chain of the audit log; `journal.chain` knows what makes it good."""

    async def links(self, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Link]:
        """The links after the position `after`: of `Decided`, `AskAnswered` and `SessionDeleted`.

        Those of deleted sessions are among them, without their entries. An empty page is the end.
        """


class Journal(Log, Overview, Usage, Chain, Protocol):
    """The truth about all sessions."""

    @property
    def epoch(self) -> str:
        """Names this journal: numbers and positions of another one mean nothing here."""

    @property
    def position(self) -> int:
        """The position of the last event; 0 when there is none."""

    async def delete(self, session: str, *, by: str) -> Stored:
        """Forget a session and all that was said in it.

        A last event, `SessionDeleted`, takes the place of all others, so that every follower learns
        of it. Raises `NotFound`.
        """

    async def close(self) -> None:
        """Store what is under way, and end. May be called twice."""
