"""What a transaction of a journal will write, collected before it is written.

Owns the step from an append to the rows of every table: events are placed and folded, questions
opened and settled, the audit log sealed, usage summed. The engines that write to tables share it;
it knows no SQL. Everything is dropped if the transaction fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.journal.chain import digest_of, is_audited, is_chained, seal_of
from quarterdeck.journal.event_codec import Encoded, place_events
from quarterdeck.journal.ownership import Conditions
from quarterdeck.journal.shared_records import SharingRecords
from quarterdeck.journal.usage import Share, limit_state, shares
from quarterdeck.journal.views import fold, significant
from quarterdeck.protocol.events import PromptQueued
from quarterdeck.protocol.session_view import SessionView, only_counts
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import LimitState


class Job(Struct, eq=False):
    """An append, and the future that waits for it. `forget`: it replaces all events."""

    session: str
    at: int
    encoded: Encoded
    done: asyncio.Future[list[Stored]]
    forget: bool = False
    snapshot: bytes | None = None
    conditions: Conditions | None = None
    """The conditions of the append."""
    work: Callable[[SharingRecords], None] | None = None
    """Instead of an append: what is changed in the records that hubs share."""


class Result(Struct):
    """The result of a job: the stored events, or the error."""

    job: Job
    outcome: list[Stored] | QuarterdeckError


class Known(Struct):
    """A session in the journal, and (after the first append) its view."""

    number: int
    head: int
    deleted: bool
    view: SessionView | None = None


class UsageStage:
    """The usage that a transaction adds."""

    def __init__(self) -> None:
        self.shares: list[tuple[int, Share]] = []
        """Each with the number of its session."""
        self.limits: list[LimitState] = []

    def take(
        self, number: int, before: SessionView | None, after: SessionView, stored: Stored
    ) -> None:
        """Add an event of the session with this number."""
        if only_counts(stored.event):
            return
        self.shares += [(number, share) for share in shares(before, after, stored)]
        if (new_limit := limit_state(after, stored)) is not None:
            self.limits.append(new_limit)

    def clear(self) -> None:
        """It is written."""
        self.shares.clear()
        self.limits.clear()


class Group(Struct):
    """The changes of a transaction."""

    position: int
    seal: bytes
    """The seal of the audit log's last entry."""
    sessions: dict[str, Known] = field(default_factory=dict)
    rewrite: set[str] = field(default_factory=set)
    """Sessions whose view has changed in more than its counters."""
    opened: list[tuple[int, int, str]] = field(default_factory=list)
    settled: list[tuple[int, int, str]] = field(default_factory=list)
    audit: list[tuple[int, int]] = field(default_factory=list)
    chain: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)
    prompts: list[tuple[int, str]] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    snapshots: dict[int, tuple[int, bytes] | None] = field(default_factory=dict)
    """By session: the number of the event, and the state after it; None drops it."""
    usage: UsageStage = field(default_factory=UsageStage)

    def add(
        self,
        session: str,
        known: Known,
        view: SessionView | None,
        at: int,
        encoded: Encoded,
        *,
        snapshot: bytes | None,
        forget: bool,
    ) -> list[Stored]:
        """Add the events of an append, at least one, to a session with this view."""
        stored = place_events(encoded, session, known.head, self.position, at)
        last = stored[-1]
        self.position = last.position
        had_run = view is not None and view.run is not None
        for each in significant(stored):
            view = self._fold(known.number, view, each)
        if view is None or view.run is None:
            if had_run:
                self.snapshots[known.number] = None
        elif snapshot is not None:
            self.snapshots[known.number] = (last.seq, snapshot)
        self.sessions[session] = Known(known.number, last.seq, deleted=forget, view=view)
        return stored

    def add_snapshot(self, known: Known, view: SessionView | None, snapshot: bytes | None) -> None:
        """Add a snapshot without events: the state after the last one."""
        if snapshot is not None and view is not None and view.run is not None:
            self.snapshots[known.number] = (known.head, snapshot)

    def seal_event(self, number: int, stored: Stored) -> None:
        """Seal an entry of the audit log."""
        digest = digest_of(stored)
        self.seal = seal_of(self.seal, digest)
        self.chain.append((stored.position, number, digest, self.seal))

    def clear(self) -> None:
        """All rows are written."""
        self.forgotten.clear()
        self.snapshots.clear()
        self.audit.clear()
        self.chain.clear()
        self.opened.clear()
        self.settled.clear()
        self.prompts.clear()
        self.usage.clear()

    def _fold(self, number: int, before: SessionView | None, stored: Stored) -> SessionView:
        view = fold(before, stored)
        if before is None or not only_counts(stored.event):
            self.rewrite.add(stored.session)
        if isinstance(stored.event, PromptQueued):
            self.prompts.append((number, stored.event.prompt))
        if is_audited(stored.event):
            self.audit.append((stored.position, number))
        self.usage.take(number, before, view, stored)
        if is_chained(stored.event):
            self.seal_event(number, stored)
        asks = {} if before is None else before.asks
        if view.asks is not asks:
            opened, settled = view.asks.keys() - asks.keys(), asks.keys() - view.asks.keys()
            self.opened += [(stored.position, number, ask) for ask in opened]
            self.settled += [(stored.position, number, ask) for ask in settled]
        return view


def counters(known: Known, view: SessionView) -> tuple[int, int, int, int, int]:
    """The columns of a session that most appends change, behind its number."""
    return known.number, known.head, view.updated, view.said, view.sent
