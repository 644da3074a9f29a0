"""The interface of a journal, for every engine.

The journal is the append-only record of all sessions: every event, numbered per session without
gaps, and in one order over all sessions. The hub appends; every front follows. The engines are
`memory`, `sqlite` and `postgres`; all pass the suite in `quarterdeck.testing.contracts.journal`.

A journal knows events. It does not know what a line of the CLI means.

There are six protocols, since most users need one of them: `Log` is the events, `Overview` the
views folded from them, `Snapshots` the state that the hub stores beside them, `Usage` the sums of
cost and tokens, `Chain` the proof that the audit log is unchanged, `Sharing` what several hubs on
one journal need. A `Journal` is all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from quarterdeck.domain.errors import JournalError
from quarterdeck.domain.structs import Value
from quarterdeck.journal.chain import Link
from quarterdeck.journal.ownership import HubPlace, Lease, Owner, SharedChanges, SharedValue
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.events import Event
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import RawEvents, Stored
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow
from quarterdeck.protocol.views import AskView

__all__ = [
    "AskRecord",
    "Chain",
    "Follower",
    "HubPlace",
    "Journal",
    "Lease",
    "Log",
    "Overview",
    "Owner",
    "RawEvents",
    "SharedChanges",
    "SharedValue",
    "Sharing",
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
        self,
        session: str,
        events: Sequence[Event],
        *,
        snapshot: bytes | None = None,
        after: int | None = None,
        fence: int | None = None,
        claim: str | None = None,
        lease: Lease | None = None,
    ) -> list[Stored]:
        """Store these events of a session, all of them or none. What this returns is durable.

        `snapshot` is the state after these events, as `Snapshots` gives it back: stored together
        with them, in place of the one before. With no events it is the state after the last one.

        The others are conditions, checked in the transaction that stores the events; nothing is
        stored if one does not hold. They are for several hubs on one journal (`Sharing`):

        - `after`: the number of the session's last event is this one. Else `StaleHead`.
        - `fence`: the stored fence of the session is not higher. Else `StaleFence`.
        - `claim`: the session belongs to this hub, or has no run, or has no owner; from these
          events on it belongs to the hub (`owner` tells its fence). Else `StaleFence`.
        - `lease`: nobody else took the lease. Else `StaleLease`.

        With `fence` or `claim`, a `RunStarting` on a machine that belongs to another hub than the
        session is refused, too: see `Sharing.raise_fence`. Conditions are checked without events,
        too.

        Raises `UsageError` for an event that is not valid JSON, `NotFound` for a deleted session,
        `JournalError` when it cannot be written. A cancelled append may still be stored, as a
        whole; followers then get it.
        """

    async def read(self, session: str, *, after: int = 0, limit: int = PAGE_EVENTS) -> list[Stored]:
        """The events of a session that follow the number `after`, a page at a time.

        A page of large events may have fewer than `limit`. An empty page is the end.
        """

    async def raw_events(self, session: str, *, after: int = 0) -> RawEvents | None:
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
        self,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = PAGE_EVENTS,
        session: str | None = None,
    ) -> list[Stored]:
        """The audit log after the position `after`, in the order of all events: `is_audited`.

        With `before`: the entries between the two positions, the newest first.
        """

    async def audit_page(
        self,
        kind: AuditKind,
        *,
        before: int,
        after: int = 0,
        limit: int = PAGE_EVENTS,
        session: str | None = None,
    ) -> AuditPage:
        """Entries of one kind between the two positions, the newest first.

        It reads a bounded number of entries (`audit_pages.SEARCHED`), so a page may be empty
        before the end of the log.
        """


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


class Sharing(Protocol):
    """What several hubs on one journal need: who owns what, leases, and shared values.

    Fences, generations and versions come from one counter: a later one is higher. A hub's id is
    that of one process: a hub that starts again has a new one.
    """

    @property
    def trouble(self) -> JournalError | None:
        """Why it can be neither read nor written now; None: nothing is known to be wrong.

        The code `moved` is for good: the database is another one, and must be opened again.
        """

    async def announce(self, hub: str, url: str) -> None:
        """Tell the others where this hub is reached; again now and then: it is a sign of life."""

    async def hubs(self) -> list[HubPlace]:
        """The hubs that announced themselves, the latest first."""

    async def forget_hub(self, hub: str) -> None:
        """Remove a hub's announcement. What it owns stays its own until it is claimed."""

    async def raise_fence(
        self, machine: str, hub: str, *, after: int | None = None, lease: Lease | None = None
    ) -> int:
        """The machine belongs to this hub from now on, with its sessions that have a run there.

        The machine of old events, which is empty, is `local`. With `after` only if its generation
        is that one, with `lease` only if nobody else took the lease: else `StaleFence`.

        Returns the machine's new generation, which is the fence of those sessions. An append with
        an older fence, or with the claim of another hub, then stores nothing.
        """

    async def take_over(self, session: str, hub: str) -> int:
        """The session belongs to this hub from now on, with its run: its CLI came here by itself.

        Returns its new fence. Raises `NotFound`.
        """

    async def machine_owner(self, machine: str) -> Owner | None:
        """The hub that raised the machine's fence last."""

    async def machine_owners(self) -> dict[str, Owner]:
        """The owners of all machines that ever had one."""

    async def owner(self, session: str) -> Owner | None:
        """The hub that owns a session; None if no hub ever claimed it."""

    async def owners(self) -> dict[str, Owner]:
        """The owners of all sessions that have one."""

    async def fence(self, session: str) -> int:
        """The fence of a session; 0 if no hub ever claimed it."""

    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease for so long; None while another holder has it.

        The holder that has it already gets it again, with a new fence. The time is that of the
        journal: of the database, or of this process where there is none.
        """

    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Keep a lease for so long from now; False if another holder took it."""

    async def release_lease(self, lease: Lease) -> None:
        """Give a lease back: the next holder need not wait. An append with it then fails."""

    async def shared_value(self, namespace: str, key: str) -> SharedValue | None:
        """A value of the shared store."""

    async def shared_values(self, namespace: str) -> dict[str, SharedValue]:
        """All values of a namespace, by key, in order."""

    async def shared_version(self, namespace: str) -> int:
        """The version of the namespace's last change, also of a removal; 0 before the first."""

    async def shared_changes(self, namespace: str, *, after: int = 0) -> SharedChanges:
        """The values that were changed or removed after this version, in order."""

    async def share(
        self,
        namespace: str,
        key: str,
        value: bytes | None,
        *,
        expected: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """Store a value (None removes it), and return its version.

        With `expected` only if the present version is that one; 0 means that there is no value.
        Else it raises `Conflict` with the code `changed`, and stores nothing. With `lease` only if
        nobody else took the lease: else it raises `StaleLease`, and stores nothing. Raises
        `UsageError` for more than `shared_records.LARGEST_VALUE` bytes.
        """

    async def share_all(
        self,
        namespace: str,
        values: Mapping[str, bytes | None],
        *,
        expected: Mapping[str, int] | None = None,
        lease: Lease | None = None,
    ) -> int:
        """Store several values of a namespace, all or none; they have one version.

        The conditions are those of `share`; `expected` need not name all of them.
        """

    async def forget_removed(self, namespace: str, *, before: int) -> None:
        """Forget which values were removed up to this version. They stay removed.

        Who then asks for the changes after an older version gets all values (`whole`).
        """


class Journal(Log, Snapshots, Overview, Usage, Chain, Sharing, Protocol):
    """The record of all sessions."""

    @property
    def epoch(self) -> str:
        """The id of this journal. Numbers and positions of another epoch are meaningless here."""

    @property
    def position(self) -> int:
        """The position of the last event, or 0."""

    async def reaches(self, position: int) -> bool:
        """Whether it has come to this position. If so, `follow` may begin after it.

        Where others append too, a position of theirs may be one that followers here are told of
        in a moment: that is waited for.
        """

    async def delete(
        self,
        session: str,
        *,
        by: str,
        after: int | None = None,
        fence: int | None = None,
        claim: str | None = None,
        lease: Lease | None = None,
    ) -> Stored:
        """Delete a session and its events.

        A last event, `SessionDeleted`, replaces all others, so that every follower gets it. Raises
        `NotFound`. The conditions are those of `append`.
        """

    async def close(self) -> None:
        """Store pending appends, then close. Idempotent."""
