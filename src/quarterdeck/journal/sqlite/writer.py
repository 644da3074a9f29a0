"""The writer thread: it takes what is queued, and commits it as a group.

During a commit the next appends queue up, so groups grow with the load, and no timer is needed. The
results of a group are given to the event loop in one call.

A group whose commit fails is tried again one by one, so that one bad append does not fail others,
and on a full disk small ones may still fit.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, count, repeat
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError, NotFound, QuarterdeckError
from quarterdeck.journal.chain import digest_of, genesis, is_audited, is_chained, seal_of
from quarterdeck.journal.sqlite.file import connect, explained_errors, set_up, transaction
from quarterdeck.journal.sqlite.reader import Reader
from quarterdeck.journal.sqlite.timing import CommitTimes
from quarterdeck.journal.sqlite.usage import UsageStage, forget
from quarterdeck.journal.stored import Encoded, Stored, placed
from quarterdeck.journal.views import VIEW_VERSION, SessionView, fold, only_counts, significant
from quarterdeck.protocol.events import PromptQueued

log = logging.getLogger(__name__)

GROUP_EVENTS = 5000
GROUP_BYTES = 32 * 1024 * 1024
"""The limits of a group, so that the first append in it does not wait too long."""

REFOLD_EVENTS = 1000

INSERT_ROWS = 128
"""Rows of one statement: five values each, and old versions of SQLite accept 999 values."""

FEW_ROWS = 16
"""Up to this number of rows each has its statement; above, only powers of two have one."""

ROW_VALUES = 5
"""The number of values of a row: of an event, and of a session's counters."""

_ADD_PROMPT = "INSERT OR IGNORE INTO prompts VALUES (?, ?)"

_encoder = msgspec.json.Encoder()


class Job(Struct, eq=False):
    """An append, and the future that waits for it. `forget`: it replaces all events."""

    session: str
    at: int
    encoded: Encoded
    done: asyncio.Future[list[Stored]]
    forget: bool = False
    snapshot: bytes | None = None


class Result(Struct):
    """The result of a job: the stored events, or the error."""

    job: Job
    outcome: list[Stored] | QuarterdeckError


class _Known(Struct):
    """A session in the file, and (after the first append) its view."""

    number: int
    head: int
    deleted: bool
    view: SessionView | None = None


class _Group(Struct):
    """The changes of a transaction; dropped if it fails."""

    position: int
    seal: bytes
    """The seal of the audit log's last entry."""
    sessions: dict[str, _Known] = field(default_factory=dict)
    rewrite: set[str] = field(default_factory=set)
    """Sessions whose view has changed in more than its counters."""
    events: list[int | bytes] = field(default_factory=list)
    """The values of all rows, flat."""
    opened: list[tuple[int, int, str]] = field(default_factory=list)
    settled: list[tuple[int, int, str]] = field(default_factory=list)
    audit: list[tuple[int, int]] = field(default_factory=list)
    chain: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)
    prompts: list[tuple[int, str]] = field(default_factory=list)
    forgotten: list[tuple[int]] = field(default_factory=list)
    snapshots: dict[int, tuple[int, bytes] | None] = field(default_factory=dict)
    """By session: the number of the event, and the state after it; None drops it."""
    usage: UsageStage = field(default_factory=UsageStage)


class Writer:
    """Owns the writing connection and its thread."""

    def __init__(self, path: Path) -> None:
        """Open the file, which must exist. Raises errors of SQLite."""
        self._path = path
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._sessions: dict[str, _Known] = {}
        self._connection = connect(path)
        self._reader = Reader(path, self._connection)
        try:
            set_up(self._connection, path)
            self._load()
        except BaseException:
            self._connection.close()
            raise
        self._thread: threading.Thread | None = None
        self.times = CommitTimes()

    def _load(self) -> None:
        ask = self._connection.execute
        self.epoch = str(ask("SELECT epoch FROM journal").fetchone()[0])
        self.position = int(ask("SELECT coalesce(max(position), 0) FROM events").fetchone()[0])
        for session, number, head, deleted in ask(
            "SELECT session, number, head, deleted FROM sessions"
        ):
            self._sessions[session] = _Known(number, head, bool(deleted))
        self._seal = self._chained()
        stale = ask("SELECT session FROM sessions WHERE folded <> ?", (VIEW_VERSION,)).fetchall()
        for (session,) in stale:
            self._refold(session)

    def _chained(self) -> bytes:
        """The seal of the last entry. Entries from before the chain existed are chained now."""
        last = self._connection.execute("SELECT seal FROM chain ORDER BY position DESC LIMIT 1")
        row = last.fetchone()
        if row is not None:
            return bytes(row[0])
        group = _Group(self.position, genesis(self.epoch))
        with transaction(self._connection):
            after = 0
            while old := self._reader.audit(after, REFOLD_EVENTS, None):
                after = old[-1].position
                for stored in old:
                    self._seal_event(group, self._sessions[stored.session].number, stored)
                self._flush(group)
        return group.seal

    def _refold(self, session: str) -> None:
        """Fold a view, and its sums, that another version of the program made."""
        view: SessionView | None = None
        known = self._sessions[session]
        usage = UsageStage()
        prompts: list[tuple[int, str]] = []
        while events := self._reader.session(session, view.head if view else 0, REFOLD_EVENTS):
            for stored in events:
                before, view = view, fold(view, stored)
                usage.take(known.number, before, view, stored)
                if isinstance(stored.event, PromptQueued):
                    prompts.append((known.number, stored.event.prompt))
        if view is not None:
            with transaction(self._connection):
                if not known.deleted:  # a deleted one has no events, and its sums stay
                    forget(self._connection, known.number)
                usage.write(self._connection)
                self._connection.executemany(_ADD_PROMPT, prompts)
                self._write_view(session, replace(known, view=view))

    @property
    def heads(self) -> dict[str, int]:
        """The number of the last event of each session, before the thread starts."""
        return {session: known.head for session, known in self._sessions.items()}

    def start(self, tell: Callable[[list[Result]], None]) -> None:
        """Start the thread. It calls `tell` with the results of each group."""
        self._thread = threading.Thread(
            target=self._work, args=(tell,), name="journal", daemon=True
        )
        self._thread.start()

    def put(self, job: Job) -> None:
        """Queue a job."""
        self._queue.put(job)

    def finish(self) -> None:
        """Write what is queued, and end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def close(self) -> None:
        """Close the file, as the last step: SQLite then checkpoints it."""
        self._connection.close()

    # --- the thread ----------------------------------------------------------------------------

    def _work(self, tell: Callable[[list[Result]], None]) -> None:
        ended = False
        while not ended:
            jobs, ended = self._take()
            if jobs:
                tell(self._write(jobs))

    def _take(self) -> tuple[list[Job], bool]:
        """Wait for a job, and take the jobs queued after it. Also: whether it is the end."""
        jobs: list[Job] = []
        events = size = 0
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            events += len(job.encoded.lines)
            size += job.encoded.size
            if events >= GROUP_EVENTS or size >= GROUP_BYTES:
                return jobs, False
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return jobs, False
        return jobs, True

    def _write(self, jobs: list[Job]) -> list[Result]:
        try:
            return self._commit(jobs)
        except JournalError as error:
            if len(jobs) == 1:
                return [Result(jobs[0], error)]
            return [result for job in jobs for result in self._write([job])]
        except Exception as error:  # a bug must not leave callers waiting
            log.exception("the journal's writer failed")
            failure = JournalError(f"the journal {self._path}: {type(error).__name__}: {error}")
            return [Result(job, failure) for job in jobs]

    def _commit(self, jobs: list[Job]) -> list[Result]:
        group = _Group(self.position, self._seal)
        began = time.perf_counter()
        with explained_errors(self._path), transaction(self._connection):
            results = [self._stage(group, job) for job in jobs]
            self._flush(group)
        # It is durable: from here on nothing can fail.
        self.times.add(time.perf_counter() - began)
        self._sessions |= group.sessions
        self.position, self._seal = group.position, group.seal
        return results

    def _stage(self, group: _Group, job: Job) -> Result:
        known = group.sessions.get(job.session) or self._sessions.get(job.session)
        if known is None and not job.forget:
            known = _Known(self._next_number(group), 0, deleted=False)
        if known is None or known.deleted:
            return Result(job, NotFound("session", job.session))
        if not job.encoded.lines and job.snapshot is None:
            return Result(job, [])
        view = known.view or (self._reader.view(job.session) if known.head else None)
        if not job.encoded.lines:
            if job.snapshot is not None and view is not None and view.run is not None:
                group.snapshots[known.number] = (known.head, job.snapshot)
            return Result(job, [])
        if job.forget:
            self._flush(group)
            group.forgotten.append((known.number,))
        stored = placed(job.encoded, job.session, known.head, group.position, job.at)
        first, last = stored[0], stored[-1]
        group.position = last.position
        group.events += chain.from_iterable(
            zip(
                count(first.position),
                repeat(known.number),
                count(first.seq),
                repeat(job.at),
                job.encoded.lines,
                strict=False,
            )
        )
        had_run = view is not None and view.run is not None
        for each in significant(stored):
            view = self._fold(group, known.number, view, each)
        if view is None or view.run is None:
            if had_run:
                group.snapshots[known.number] = None
        elif job.snapshot is not None:
            group.snapshots[known.number] = (last.seq, job.snapshot)
        group.sessions[job.session] = _Known(known.number, last.seq, deleted=job.forget, view=view)
        return Result(job, stored)

    def _next_number(self, group: _Group) -> int:
        return len(self._sessions.keys() | group.sessions.keys()) + 1  # none is ever removed

    def _fold(
        self, group: _Group, number: int, before: SessionView | None, stored: Stored
    ) -> SessionView:
        view = fold(before, stored)
        if before is None or not only_counts(stored.event):
            group.rewrite.add(stored.session)
        if isinstance(stored.event, PromptQueued):
            group.prompts.append((number, stored.event.prompt))
        if is_audited(stored.event):
            group.audit.append((stored.position, number))
        group.usage.take(number, before, view, stored)
        if is_chained(stored.event):
            self._seal_event(group, number, stored)
        asks = {} if before is None else before.asks
        if view.asks is not asks:
            opened, settled = view.asks.keys() - asks.keys(), asks.keys() - view.asks.keys()
            group.opened += [(stored.position, number, ask) for ask in opened]
            group.settled += [(stored.position, number, ask) for ask in settled]
        return view

    def _seal_event(self, group: _Group, number: int, stored: Stored) -> None:
        digest = digest_of(stored)
        group.seal = seal_of(group.seal, digest)
        group.chain.append((stored.position, number, digest, group.seal))

    def _flush(self, group: _Group) -> None:
        """Write the staged changes, within the open transaction."""
        settle = "UPDATE asks SET settled = ? WHERE session = ? AND ask = ? AND settled IS NULL"
        if group.forgotten:
            for table in ("events", "asks", "audit", "prompts", "snapshots"):
                delete = f"DELETE FROM {table} WHERE session = ?"  # noqa: S608 - these five
                self._connection.executemany(delete, group.forgotten)
        self._write_rows(_insert, group.events)
        # Most groups have only events, and even an empty statement costs time.
        for statement, rows in (
            ("INSERT INTO audit VALUES (?, ?)", group.audit),
            ("INSERT INTO chain VALUES (?, ?, ?, ?)", group.chain),
            ("INSERT INTO asks VALUES (?, ?, ?, NULL)", group.opened),
            (settle, group.settled),
            (_ADD_PROMPT, group.prompts),
        ):
            if rows:
                self._connection.executemany(statement, rows)
        for number, snapshot in group.snapshots.items():
            self._write_snapshot(number, snapshot)
        group.usage.write(self._connection)
        counters: list[int] = []
        for session, known in group.sessions.items():
            if session in group.rewrite:
                self._write_view(session, known)
            elif known.view is not None:
                counters += _counters(known, known.view)
        self._write_rows(_count, counters)
        group.forgotten.clear()
        group.snapshots.clear()
        group.events.clear()
        group.audit.clear()
        group.chain.clear()
        group.opened.clear()
        group.settled.clear()
        group.prompts.clear()

    def _write_rows(self, statement: Callable[[int], str], values: Sequence[int | bytes]) -> None:
        """Write many rows with one statement: the event loop runs while SQLite executes it.

        Row by row, this thread would wait for the interpreter after each row.
        """
        at = 0
        while left := (len(values) - at) // ROW_VALUES:
            rows = left if left <= FEW_ROWS else min(INSERT_ROWS, 1 << (left.bit_length() - 1))
            end = at + rows * ROW_VALUES
            self._connection.execute(statement(rows), values[at:end])
            at = end

    def _write_snapshot(self, number: int, snapshot: tuple[int, bytes] | None) -> None:
        if snapshot is None:
            self._connection.execute("DELETE FROM snapshots WHERE session = ?", (number,))
        else:
            row = (number, *snapshot)
            self._connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", row)

    def _write_view(self, session: str, known: _Known) -> None:
        view = known.view
        if view is None:
            return
        number, *counters = _counters(known, view)
        self._connection.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                session,
                *counters,
                view.archived,
                view.deleted,
                VIEW_VERSION,
                _encoder.encode(view),
            ),
        )


def _counters(known: _Known, view: SessionView) -> tuple[int, ...]:
    return known.number, known.head, view.updated, view.said, view.sent


@cache
def _count(rows: int) -> str:
    """The statement that writes the counters of so many existing sessions.

    It never inserts: it is an upsert only because an update takes one row at a time.
    """
    row = "(?, '', ?, ?, ?, ?, 0, 0, 0, x'')"
    # Only question marks are formatted into it.
    return (
        f"INSERT INTO sessions VALUES {','.join([row] * rows)}"  # noqa: S608
        " ON CONFLICT (number) DO UPDATE SET head = excluded.head, updated = excluded.updated,"
        " said = excluded.said, sent = excluded.sent"
    )


@cache
def _insert(rows: int) -> str:
    """The statement that stores so many events."""
    row = f"({','.join('?' * ROW_VALUES)})"
    # Only question marks are formatted into it.
    return f"INSERT INTO events VALUES {','.join([row] * rows)}"  # noqa: S608
