"""The writer thread: it takes what is queued, and commits it as a group.

During a commit the next appends queue up, so groups grow with the load, and no timer is needed. The
results of a group are given to the event loop in one call.

A group whose commit fails is tried again one by one, so that one bad append does not fail others,
and on a full disk small ones may still fit.

A journal that is shared with other processes is looked at again in each transaction that follows a
commit of another one.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, count, repeat
from pathlib import Path

import msgspec
from msgspec import field
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError, NotFound, QuarterdeckError
from quarterdeck.journal.chain import genesis
from quarterdeck.journal.commit_times import CommitTimes
from quarterdeck.journal.sqlite.file import connect, explained_errors, set_up, transaction
from quarterdeck.journal.sqlite.reader import Reader
from quarterdeck.journal.sqlite.shared_records import SqliteRecords
from quarterdeck.journal.sqlite.usage import forget, write_usage
from quarterdeck.journal.transaction import Group, Job, Known, Result, UsageStage, counters
from quarterdeck.journal.views import VIEW_VERSION, fold
from quarterdeck.protocol.events import PromptQueued
from quarterdeck.protocol.session_view import SessionView

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


class _Group(Group):
    """The changes of a transaction, with the rows of its events."""

    events: list[int | bytes] = field(default_factory=list)
    """The values of all rows, flat."""


class Writer:
    """Owns the writing connection and its thread."""

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, shared: bool = False
    ) -> None:
        """Open the file, which must exist. Raises errors of SQLite."""
        self._path = path
        self._shared = shared
        self._changes = 0
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._sessions: dict[str, Known] = {}
        self._connection = connect(path)
        self._reader = Reader(path, self._connection)
        self._records = SqliteRecords(self._connection, clock)
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
            self._sessions[session] = Known(number, head, bool(deleted))
        self._seal = self._chain_entries()
        stale = ask("SELECT session FROM sessions WHERE folded <> ?", (VIEW_VERSION,)).fetchall()
        for (session,) in stale:
            self._refold(session)

    def _chain_entries(self) -> bytes:
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
                    group.seal_event(self._sessions[stored.session].number, stored)
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
                write_usage(usage, self._connection)
                self._connection.executemany(_ADD_PROMPT, prompts)
                self._write_view(session, replace(known, view=view))

    @property
    def heads(self) -> dict[str, int]:
        """The number of the last event of each session, before the thread starts."""
        return {session: known.head for session, known in self._sessions.items()}

    def start(self, report: Callable[[list[Result]], None]) -> None:
        """Start the thread. It calls `report` with the results of each group."""
        self._thread = threading.Thread(
            target=self._work, args=(report,), name="journal", daemon=True
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

    def _work(self, report: Callable[[list[Result]], None]) -> None:
        ended = False
        while not ended:
            jobs, ended = self._take()
            if jobs:
                report(self._write(jobs))

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
        began = time.perf_counter()
        with explained_errors(self._path), transaction(self._connection):
            if self._shared:
                self._look_again()
            group = _Group(self.position, self._seal)
            results = [self._stage(group, job) for job in jobs]
            self._flush(group)
        # It is durable: from here on nothing can fail.
        self.times.add(time.perf_counter() - began)
        self._sessions |= group.sessions
        self.position, self._seal = group.position, group.seal
        return results

    def _look_again(self) -> None:
        """Learn what other processes have stored, within the open transaction."""
        ask = self._connection.execute
        if (changes := int(ask("PRAGMA data_version").fetchone()[0])) == self._changes:
            return
        rows = ask(
            "SELECT session, number, head, deleted FROM sessions WHERE number IN"
            " (SELECT session FROM events WHERE position > ?)",
            (self.position,),
        ).fetchall()
        for session, number, head, deleted in rows:
            self._sessions[session] = Known(number, head, bool(deleted))
        (position,) = ask("SELECT coalesce(max(position), 0) FROM events").fetchone()
        last = ask("SELECT seal FROM chain ORDER BY position DESC LIMIT 1").fetchone()
        self.position = int(position)
        self._seal = genesis(self.epoch) if last is None else bytes(last[0])
        self._changes = changes

    def _stage(self, group: _Group, job: Job) -> Result:
        if job.work is not None:
            self._flush(group)
            try:
                job.work(self._records)
            except QuarterdeckError as error:
                return Result(job, error)
            return Result(job, [])
        known = group.sessions.get(job.session) or self._sessions.get(job.session)
        if known is None and not job.forget:
            known = Known(self._next_number(group), 0, deleted=False)
        if known is None or known.deleted:
            return Result(job, NotFound("session", job.session))
        if not job.encoded.lines and job.snapshot is None and job.conditions is None:
            return Result(job, [])
        view = known.view or (self._reader.view(job.session) if known.head else None)
        if job.conditions is not None:
            running = view is not None and view.run is not None
            events = job.encoded.events
            try:
                self._records.admit(
                    job.conditions, job.session, known.number, known.head, running, events
                )
            except QuarterdeckError as error:
                return Result(job, error)
        if not job.encoded.lines:
            group.add_snapshot(known, view, job.snapshot)
            return Result(job, [])
        if job.forget:
            self._flush(group)
            group.forgotten.append(known.number)
        stored = group.add(
            job.session,
            known,
            view,
            job.at,
            job.encoded,
            snapshot=job.snapshot,
            forget=job.forget,
        )
        group.events += chain.from_iterable(
            zip(
                count(stored[0].position),
                repeat(known.number),
                count(stored[0].seq),
                repeat(job.at),
                job.encoded.lines,
                strict=False,
            )
        )
        return Result(job, stored)

    def _next_number(self, group: _Group) -> int:
        return len(self._sessions.keys() | group.sessions.keys()) + 1  # none is ever removed

    def _flush(self, group: _Group) -> None:
        """Write the staged changes, within the open transaction."""
        settle = "UPDATE asks SET settled = ? WHERE session = ? AND ask = ? AND settled IS NULL"
        if group.forgotten:
            for table in ("events", "asks", "audit", "prompts", "snapshots"):
                delete = f"DELETE FROM {table} WHERE session = ?"  # noqa: S608 - these five
                self._connection.executemany(delete, [(number,) for number in group.forgotten])
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
        write_usage(group.usage, self._connection)
        counts: list[int] = []
        for session, known in group.sessions.items():
            if session in group.rewrite:
                self._write_view(session, known)
            elif known.view is not None:
                counts += counters(known, known.view)
        self._write_rows(_count, counts)
        group.events.clear()
        group.clear()

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

    def _write_view(self, session: str, known: Known) -> None:
        view = known.view
        if view is None:
            return
        number, *counts = counters(known, view)
        self._connection.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                session,
                *counts,
                view.archived,
                view.deleted,
                VIEW_VERSION,
                _encoder.encode(view),
            ),
        )


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
