"""The writer thread of the journal in PostgreSQL: it commits what is queued as a group.

Owns the attempts to store a group (`staging`), and what happens when the database goes away in the
middle of one: the writer connects again, and looks whether the group was stored before it answers
or tries again. So no append is stored twice, and none is reported as lost that was stored. An
append that breaks the connection each time fails after a few attempts; those beside it are stored
without it.

Groups grow with the load, as in SQLite's writer. Of several hubs one after the other has the
ticket's row. A session whose view another version of the program folded is folded again before the
row is taken (`refold`).
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import psycopg
from msgspec import Struct

from quarterdeck.domain.errors import JournalError, QuarterdeckError
from quarterdeck.journal.commit_times import CommitTimes
from quarterdeck.journal.postgres.address import (
    Address,
    Connection,
    explain_error,
    is_lost,
    is_transient,
)
from quarterdeck.journal.postgres.reader import Reader
from quarterdeck.journal.postgres.refold import refold
from quarterdeck.journal.postgres.schema import NOT_IDLE, begin_writing, identity, set_up
from quarterdeck.journal.postgres.shared_records import PostgresRecords
from quarterdeck.journal.postgres.staging import OldViews, Pending, Staging
from quarterdeck.journal.shared_records import SharingRecords
from quarterdeck.journal.transaction import Job, Result

log = logging.getLogger(__name__)

GROUP_EVENTS = 5000
GROUP_BYTES = 32 * 1024 * 1024
"""The limits of a group, so that the first append in it does not wait too long."""

AWAY_SECONDS = 30.0
"""How long an append waits for a database that does not answer: a server that was killed recovers,
or another one takes its place."""

MOST_LOSSES = 6
"""How often an append alone may break a connection that worked before: then it is at fault."""

RETRY_SECONDS = 0.1
"""The pause after a failure; it doubles each time."""
LONGEST_PAUSE = 2.0


class _Change(Struct):
    """A change of the records that hubs share, whose commit was sent."""

    job: Job
    query: str
    """It has a row if the change is stored: see `PostgresRecords.proof`."""
    values: tuple[object, ...]


class _Tries(Struct):
    """The attempts to store a group."""

    deadline: float
    losses: int = 0
    """How often the connection was lost."""
    folds: int = 0
    pauses: int = 0


class _Again(Struct):
    """What is to be tried next: the same jobs, or parts of them."""

    parts: list[list[Job]]


class Writer:
    """Owns the writing connection and its thread."""

    def __init__(self, address: Address) -> None:
        """Connect, and make the tables if they are missing. Raises `psycopg.Error`."""
        self._address = address
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._staging = Staging(address)
        self._pending: Pending | _Change | None = None
        """The group, or the change, whose commit was sent."""
        self._old: dict[str, int] = {}
        """Sessions that are folded again before the next attempt, with their numbers."""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self.times = CommitTimes()
        self.broken: JournalError | None = None
        """Set if the database is another one than at the start, or its tables are too new for this
        program: nothing works any more."""
        self._connection = address.connect()
        try:
            self.epoch = set_up(self._connection, address)
            self._identity = identity(self._connection)
            reader = Reader(address, self._connection)
            # In this order: what is stored in between is read again by the followers.
            self.position = reader.position()
            self.heads = reader.heads()
        except BaseException:
            self._connection.close()
            raise

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
        """Write what is queued, and end the thread. Does not wait for a database that is away."""
        self._ending.set()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def check_identity(self, connection: Connection) -> None:
        """Refuse a database that was restored, or that took over. Raises `JournalError`."""
        if self.broken is None and identity(connection) != self._identity:
            self.broken = JournalError(
                f"the journal {self._address}: the database was restored, or another one took "
                "over; events may be missing there: start this hub again",
                code="moved",
            )
            log.error("%s", self.broken)
        if self.broken is not None:
            raise self.broken

    # --- the thread ----------------------------------------------------------------------------

    def _work(self, report: Callable[[list[Result]], None]) -> None:
        ended = False
        while not ended:
            jobs, ended = self._take()
            for part in _parts(jobs):
                for results in self._write(part, time.monotonic() + AWAY_SECONDS):
                    report(results)

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

    def _write(self, jobs: list[Job], deadline: float) -> Iterator[list[Result]]:
        """Commit the jobs as a group, or in parts if they fail as a group."""
        waiting = [(jobs, _Tries(deadline))]
        while waiting:
            part, tries = waiting.pop()
            try:
                outcome = self._try(part, tries)
            except Exception as error:  # a bug must not leave callers waiting
                log.exception("the journal's writer failed")
                self._undo()
                self._pending = None
                text = f"the journal {self._address}: {type(error).__name__}: {error}"
                outcome = _failures(part, JournalError(text))
            if isinstance(outcome, _Again):
                new = len(outcome.parts) > 1
                waiting += [
                    (each, _Tries(deadline) if new else tries) for each in reversed(outcome.parts)
                ]
            else:
                yield outcome

    def _try(self, jobs: list[Job], tries: _Tries) -> list[Result] | _Again:
        try:
            if self.broken is not None:
                raise self.broken
            while self._old:
                session, number = self._old.popitem()
                refold(Reader(self._address, self._connection), self._address, session, number)
            return self._commit(jobs)
        except OldViews as found:
            self._undo()
            old = found.sessions
            others = [job for job in jobs if job.session not in old]
            if others:  # they do not wait for the fold
                return _Again([others, [job for job in jobs if job.session in old]])
            tries.folds += 1
            if tries.folds > 1 and time.monotonic() > tries.deadline:
                return _failures(jobs, _versions_differ(self._address, old))
            self._old = old
            return _Again([jobs])
        except psycopg.Error as error:
            self._undo()
            if is_lost(error, self._connection):
                return self._after_loss(jobs, tries, error)
            self._pending = None
            if is_transient(error) and self._pause(tries):
                return _Again([jobs])
            return _halves(jobs) or _failures(jobs, explain_error(error, self._address))
        except JournalError as error:
            self._undo()
            if error.code == "newer":
                self.broken = error
                log.error("%s", error)
            halves = _halves(jobs) if self.broken is None else None
            return halves or _failures(jobs, error)

    def _after_loss(
        self, jobs: list[Job], tries: _Tries, error: psycopg.Error
    ) -> list[Result] | _Again:
        """Connect again, and find out what became of the group.

        A group that breaks the connection twice is halved: one append may be at fault.
        """
        tries.losses += 1
        found = self._recover(tries.deadline)
        if isinstance(found, list):
            return found
        if isinstance(found, JournalError):
            return _failures(jobs, found)
        if tries.losses > 1 and (halves := _halves(jobs)):
            return halves
        if tries.losses == 1 or (tries.losses < MOST_LOSSES and self._pause(tries)):
            return _Again([jobs])
        text = " ".join(str(error).split())
        lost = JournalError(
            f"the journal {self._address}: the connection was lost {tries.losses} times while this "
            f"was stored ({text}); nothing was stored: look at the log of the server",
            code="away",
        )
        log.error("%s", lost)
        return _failures(jobs, lost)

    def _pause(self, tries: _Tries) -> bool:
        """Wait before the next attempt, longer each time. False if there is none."""
        if time.monotonic() > tries.deadline:
            return False
        seconds = RETRY_SECONDS * 2**tries.pauses
        tries.pauses += 1
        return not self._ending.wait(min(seconds, LONGEST_PAUSE))

    def _undo(self) -> None:
        """Roll back, as far as the connection still works; forget what may not be stored."""
        self._staging.forget()
        self._old.clear()
        try:
            if not self._connection.closed:
                self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    def _recover(self, deadline: float) -> list[Result] | JournalError | None:
        """Connect again. The results of the group if it was stored, None if it can be tried again.

        A group whose commit was sent is not given up: it may have been stored.
        """
        pending = self._pending
        last: JournalError | None = None
        warned = False
        while True:
            if last is not None:
                late = time.monotonic() > deadline
                if self._ending.is_set() or (pending is None and late):
                    self._pending = None
                    return last
                if late and not warned:
                    warned = True
                    log.error("what was written last may be stored or not; waiting: %s", last)
                self._ending.wait(RETRY_SECONDS)
            try:
                self._connection.close()
                self._connection = self._address.connect()
                self.check_identity(self._connection)
                stored = pending is not None and self._is_stored(pending)
            except psycopg.Error as error:
                last = explain_error(error, self._address)
                continue
            except JournalError as error:
                self._pending = None
                return error
            self._pending = None
            if pending is None or not stored:
                return None
            if isinstance(pending, _Change):
                return [Result(pending.job, [])]
            return self._staging.keep(pending)

    def _is_stored(self, pending: Pending | _Change) -> bool:
        """Whether a transaction was committed, for certain.

        The lost transaction has the ticket locked until it ends, so its next holder sees how it
        ended. A number may have been given again meanwhile: the whole event, or value, is compared.
        """
        if isinstance(pending, Pending) and pending.last is None:
            return False  # without events it can be done again
        with self._connection.transaction():
            self._connection.execute(NOT_IDLE.encode())
            self._connection.execute("SELECT 1 FROM quarterdeck.ticket FOR UPDATE")
            if isinstance(pending, _Change):
                rows = self._connection.execute(pending.query.encode(), pending.values).fetchall()
                return bool(rows)
            want = pending.last
            at = 0 if want is None else want.position - 1
            return Reader(self._address, self._connection).everything(at, 1) == [want]

    def _commit(self, jobs: list[Job]) -> list[Result]:
        began = time.perf_counter()
        work = jobs[0].work
        if work is not None:
            return [self._do(jobs[0], work)]
        if not any(map(_does_something, jobs)):
            return [Result(job, []) for job in jobs]
        begin_writing(self._connection, self._address)
        self._pending = staged = self._staging.stage(self._connection, jobs)
        _commit(self._connection)
        # It is durable: from here on nothing can fail.
        self.times.add(time.perf_counter() - began)
        self._pending = None
        return self._staging.keep(staged)

    def _do(self, job: Job, work: Callable[[SharingRecords], None]) -> Result:
        """Change the records that hubs share, in a transaction of its own."""
        begin_writing(self._connection, self._address)
        records = PostgresRecords(self._connection)
        try:
            work(records)
        except QuarterdeckError as error:
            self._connection.execute("ROLLBACK")
            return Result(job, error)
        if records.proof is not None:
            self._pending = _Change(job, *records.proof)
        _commit(self._connection)
        self._pending = None
        return Result(job, [])


def _commit(connection: Connection) -> None:
    """Commit. A transaction that failed before would end without an error."""
    done = connection.execute("COMMIT").statusmessage
    if done != "COMMIT":
        raise JournalError(f"the transaction ended with {done}: nothing was stored")


def _does_something(job: Job) -> bool:
    return bool(job.encoded.lines or job.snapshot is not None or job.conditions is not None)


def _failures(jobs: list[Job], error: QuarterdeckError) -> list[Result]:
    return [Result(job, error) for job in jobs]


def _halves(jobs: list[Job]) -> _Again | None:
    """The jobs in two parts; None if there is only one."""
    middle = len(jobs) // 2
    return _Again([jobs[:middle], jobs[middle:]]) if middle else None


def _versions_differ(address: Address, sessions: Iterable[str]) -> JournalError:
    return JournalError(
        f"the journal {address}: hubs of different versions write to the session "
        f"{', '.join(sorted(sessions))} at the same time; nothing was stored: upgrade the others"
    )


def _parts(jobs: list[Job]) -> Iterator[list[Job]]:
    """The jobs in groups: what changes the shared records is alone."""
    part: list[Job] = []
    for job in jobs:
        if job.work is None:
            part.append(job)
            continue
        if part:
            yield part
            part = []
        yield [job]
    if part:
        yield part
