"""The interface of a journal, for every engine.

The journal is the append-only record of all sessions: every event, numbered per session without
gaps, and in one order over all sessions. The hub appends; every front follows. The engines are
`memory` and `sqlite`; both pass the suite in `quarterdeck.testing.contracts.journal`.

A journal knows events. It does not know what a line of the CLI means.

There are five protocols, since most users need one of them: `Log` is the events, `Overview` the
views folded from them, `Snapshots` the state that the hub stores beside them, `Usage` the sums of
cost and tokens, `Chain` the proof that the audit log is unchanged. A `Journal` is all of them.
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
    "Snapshot",
    "Snapshots",
    "Stored",
    "Usage",
]

ASKS_SEARCHED = 500
"""How many questions `unanswered_asks` looks at."""

PAGE_EVENTS = 1000
"""The default number of events of a page."""


class Follower(Protocol):
    """Events as they happen: `async for batch in journal.follow(…)`.

    It replays what is in the journal, then delivers what is appended, without gaps or duplicates.
    It ends when the journal is closed. A slow follower delays nothing and keeps nothing in memory:
    it reads the journal at its own speed. A cancelled wait loses nothing. One task reads a follower
    at a time. It needs no closing.
    """

    def __aiter__(self) -> Self:
        """Itself."""

    async def __anext__(self) -> list[Stored]:
        """The next events, at least one. The events of a session are in order."""

    @property
    def behind(self) -> bool:
        """Whether events are available at once."""

    async def next_text(self) -> list[Stored] | RawEvents:
        """The same for programs that forward events; empty at the end.

        Events that must be read from the journal may come as text, without being decoded.
        """


class AskRecord(Value):
    """A question, and the event that settled it, if any."""

    ask: AskView
    settled: Stored | None = None
    """An `AskAnswered`, an `AskWithdrawn`, or the `RunEnded` of its run."""


class Log(Protocol):
    """The events, in order."""

    async def append(
        self, session: str, events: Sequence[Event], *, snapshot: bytes | None = None
    ) -> list[Stored]:
        """Store these events of a session, all of them or none. What this returns is durable.

        `snapshot` is the state after these events, as `Snapshots` gives it back: stored together
        with them, in place of the one before. With no events it is the state after the last one.

        Raises `UsageError` for an event that is not valid JSON, `NotFound` for a deleted session,
        `JournalError` when it cannot be written. A cancelled append may still be stored, as a
        whole; followers then get it.
        """

    async def read(self, session: str, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Stored]:
        """The events of a session that follow the number `after`, a page at a time.

        A page of large events may have fewer than `limit`. An empty page is the end.
        """

    async def passage(self, session: str, *, after: int = 0) -> RawEvents | None:
        """The events of a session that follow the number `after`, as the text of one frame.

        None at the end, or if the first event must be read with `read`.
        """

    async def head(self, session: str) -> int:
        """The number of the session's last event, or 0."""

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Follow these sessions, each after its number; 0 is the start.

        Without `cursors`: follow all sessions after the position `after`, or from now on. Raises
        `UsageError` for a number beyond the last event.
        """


class Snapshot(Value):
    """The state after an event, in bytes that only their owner understands."""

    seq: int
    """The number of that event in its session."""
    data: bytes


class Snapshots(Protocol):
    """The state of a session's run, so that it need not be folded from all of its events."""

    async def latest_snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot of a session.

        None if it has none, or has no run any more: with the end of a run its snapshot is dropped.
        """


class Overview(Protocol):
    """The views folded from the events; always up to date with the last append."""

    async def summaries(
        self, *, after: str | None = None, limit: int = 100, archived: bool | None = False
    ) -> list[SessionView]:
        """The sessions, newest first, a page at a time: `after` is the last id of the page before.

        `archived` None includes archived sessions, True gives only those. An empty page is the end.
        """

    async def summary(self, session: str) -> SessionView | None:
        """One session; None if it does not exist or was deleted."""

    async def sizes(self) -> dict[str, int]:
        """The size of each session's events in bytes. It reads every event."""

    async def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""

    async def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer, oldest first, of the newest `ASKS_SEARCHED`."""

    async def find_ask(self, ask: str) -> AskRecord | None:
        """A question by its id, open or settled."""

    async def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had a prompt with this id, also one that its view dropped."""

    async def audit(
        self, *, after: int = 0, limit: int = PAGE_EVENTS, session: str | None = None
    ) -> list[Stored]:
        """The audit log after the position `after`, in the order of all events: `is_audited`."""


class Usage(Protocol):
    """The usage of all sessions; always up to date with the last append."""

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> list[UsageRow]:
        """The usage from `since` until before `until`, both in ms since 1970, in order.

        Both are rounded up to the next quarter of an hour. Deleted sessions are included.
        """

    async def limits(self) -> list[LimitState]:
        """The limits of each account, as the CLIs reported them last."""


class Chain(Protocol):
    """The chain of the audit log; `journal.chain` verifies it."""

    async def links(self, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Link]:
        """The links after the position `after`: of the audit log and `SessionDeleted`.

        Links of deleted sessions are included, without entries. An empty page is the end.
        """


class Journal(Log, Snapshots, Overview, Usage, Chain, Protocol):
    """The record of all sessions."""

    @property
    def epoch(self) -> str:
        """The id of this journal. Numbers and positions of another epoch are meaningless here."""

    @property
    def position(self) -> int:
        """The position of the last event, or 0."""

    async def delete(self, session: str, *, by: str) -> Stored:
        """Delete a session and its events.

        A last event, `SessionDeleted`, replaces all others, so that every follower gets it. Raises
        `NotFound`.
        """

    async def close(self) -> None:
        """Store pending appends, then close. Idempotent."""
