"""The transaction of a group of appends in PostgreSQL: what it locks, checks and writes.

Owns the order of its locks (leases, machines, sessions by number, the ticket last), and the views
of sessions that are kept between groups. It neither begins nor commits, and does not know what
happens when the connection breaks: that is `writer`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec import Struct

from quarterdeck.domain.errors import NotFound, QuarterdeckError
from quarterdeck.journal.ownership import (
    Owner,
    check_head,
    check_lease,
    check_machine,
    machines_of,
    owner_after,
)
from quarterdeck.journal.postgres.address import Address, Connection
from quarterdeck.journal.postgres.reader import Reader
from quarterdeck.journal.postgres.rows import PostgresGroup, write_group
from quarterdeck.journal.transaction import Job, Known, Result
from quarterdeck.journal.views import VIEW_VERSION
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored

_LOCK = "SELECT * FROM quarterdeck.begin_group(%b::text[], %b::text[], %b::bigint[], %b::int)"


class _Locked(Struct):
    """The row of a session, as this transaction has locked it."""

    known: Known
    owner: Owner | None
    view: SessionView | None


class Pending(Struct):
    """A group that is written, and is to be committed."""

    group: PostgresGroup
    results: list[Result]
    last: Stored | None


class OldViews(Exception):
    """Sessions of a group whose views another version folded, with their numbers."""

    def __init__(self, sessions: dict[str, int]) -> None:
        super().__init__()
        self.sessions = sessions


class Staging:
    """Stages groups, one after the other."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sessions: dict[str, Known] = {}

    def stage(self, connection: Connection, jobs: list[Job]) -> Pending:
        """Lock what the jobs need, check their conditions, and write their rows.

        In a transaction that has begun, and that the caller commits. Raises `OldViews` before any
        change, and `psycopg.Error`.
        """
        leases, machines = _lock_conditions(connection, jobs)
        group, locked, old = self._lock(connection, jobs)
        wanted = (job for job in jobs if job.session in old)
        if some := {
            job.session: old[job.session] for job in wanted if _may_store(job, locked[job.session])
        }:
            raise OldViews(some)
        last: list[Stored] = []
        results: list[Result] = []
        for job in jobs:
            try:
                _admit(group, job, locked, leases, machines)
                stored = _stage_job(connection, group, job, locked)
            except QuarterdeckError as error:
                results.append(Result(job, error))
                continue
            results.append(Result(job, stored))
            last = stored or last
        _drop_unused(connection, locked)
        write_group(connection, group)
        return Pending(group, results, last[-1] if last else None)

    def keep(self, pending: Pending) -> list[Result]:
        """Keep the views of a group that is stored; gives its results."""
        self._sessions |= pending.group.sessions
        return pending.results

    def forget(self) -> None:
        """Forget all views: what was staged may not be stored."""
        self._sessions.clear()

    def _lock(
        self, connection: Connection, jobs: list[Job]
    ) -> tuple[PostgresGroup, dict[str, _Locked], dict[str, int]]:
        """Lock the rows of the sessions, and the ticket. Also: the sessions with old views."""
        names = list({job.session: None for job in jobs})
        begin = {job.session for job in jobs if job.encoded.lines and not job.forget}
        fresh = begin - self._sessions.keys()
        heads = [self._cached_head(name) for name in names]
        values = (list(fresh), names, heads, VIEW_VERSION)
        *rows, ticket = connection.execute(_LOCK, values, binary=True).fetchall()
        position, seal, tick = ticket[11:14]
        group = PostgresGroup(position, seal)
        group.tick = tick
        old = {row[0]: row[1] for row in rows if row[2] and not row[3] and row[9] != VIEW_VERSION}
        return group, {row[0]: self._read_row(connection, group, row, old) for row in rows}, old

    def _cached_head(self, session: str) -> int:
        known = self._sessions.get(session)
        return -1 if known is None or known.view is None else known.head

    def _read_row(
        self,
        connection: Connection,
        group: PostgresGroup,
        row: tuple[Any, ...],
        old: Container[str],
    ) -> _Locked:
        session, number, head, deleted, owner, fence = row[:6]
        cached = self._sessions.get(session)
        view = None if cached is None else cached.view
        if row[10] is not None:
            reader = Reader(self._address, connection)
            view = None if session in old else reader.view_of((session, head, *row[6:11]))
        group.owners[session] = (owner, fence)
        return _Locked(
            known=Known(number, head, deleted, view),
            owner=Owner(hub=owner, fence=fence) if owner else None,
            view=view if head else None,
        )


def _lock_conditions(
    connection: Connection, jobs: list[Job]
) -> tuple[dict[str, tuple[int, str]], dict[str, Owner]]:
    """The leases and machines that the group depends on, in the order of all locks."""
    asked = [(job.conditions, job) for job in jobs if job.conditions is not None]
    names = sorted(
        {conditions.lease.name for conditions, _ in asked if conditions.lease is not None}
    )
    on = {
        m
        for conditions, job in asked
        if conditions.asks_owner
        for m in machines_of(job.encoded.events)
    }
    leases: dict[str, tuple[int, str]] = {}
    machines: dict[str, Owner] = {}
    if names:
        rows = connection.execute(
            "SELECT name, fence, holder FROM quarterdeck.leases WHERE name = ANY(%s)"
            " ORDER BY name FOR SHARE",
            (names,),
        )
        leases = {name: (fence, holder) for name, fence, holder in rows}
    if on:
        # There must be a row to lock: a hub may take the machine for the first time just now.
        connection.execute(
            "INSERT INTO quarterdeck.machines SELECT name, '', 0"
            " FROM unnest(%s::text[]) AS name ON CONFLICT (machine) DO NOTHING",
            (sorted(on),),
        )
        rows = connection.execute(
            "SELECT machine, hub, generation FROM quarterdeck.machines WHERE machine = ANY(%s)"
            " ORDER BY machine FOR SHARE",
            (sorted(on),),
        )
        machines = {name: Owner(hub=hub, fence=fence) for name, hub, fence in rows if hub}
    return leases, machines


def _admit(
    group: PostgresGroup,
    job: Job,
    locked: dict[str, _Locked],
    leases: dict[str, tuple[int, str]],
    machines: dict[str, Owner],
) -> None:
    """Check the conditions of an append, then note a claim. Raises before any change."""
    if not job.forget and not job.encoded.lines:  # without events none begins
        locked.setdefault(job.session, _Locked(Known(0, 0, deleted=False), None, None))
    row = locked.get(job.session)
    if row is None or row.known.deleted or (job.forget and not row.known.head):
        raise NotFound("session", job.session)
    conditions = job.conditions
    if conditions is None:
        return
    check_head(conditions, job.session, row.known.head)
    if conditions.lease is not None:
        check_lease(conditions, *leases.get(conditions.lease.name, (None, "")))
    if not conditions.asks_owner:
        return
    running = row.view is not None and row.view.run is not None
    hub, new = owner_after(conditions, job.session, row.owner, running)
    for machine in machines_of(job.encoded.events):
        check_machine(machine, machines.get(machine), hub)
    if new:
        group.tick += 1
        row.owner = Owner(hub=hub, fence=group.tick)
        group.owners[job.session] = (hub, group.tick)
        if row.known.head:
            group.sessions.setdefault(job.session, row.known)


def _stage_job(
    connection: Connection, group: PostgresGroup, job: Job, locked: dict[str, _Locked]
) -> list[Stored]:
    row = locked[job.session]
    if not job.encoded.lines:
        group.add_snapshot(row.known, row.view, job.snapshot)
        return []
    if job.forget:
        write_group(connection, group)
        group.forgotten.append(row.known.number)
    stored = group.add(
        job.session,
        row.known,
        row.view,
        job.at,
        job.encoded,
        snapshot=job.snapshot,
        forget=job.forget,
    )
    group.events += stored
    row.known = group.sessions[job.session]
    row.view = row.known.view
    return stored


def _drop_unused(connection: Connection, locked: dict[str, _Locked]) -> None:
    """Rows of sessions that were to begin, and did not."""
    rows = (row.known for row in locked.values())
    unused = [known.number for known in rows if known.number and not known.head]
    if unused:
        connection.execute(
            "DELETE FROM quarterdeck.sessions WHERE number = ANY(%s) AND head = 0", (unused,)
        )


def _may_store(job: Job, row: _Locked) -> bool:
    """Whether an append may be admitted, as far as it can be told without a view."""
    conditions = job.conditions
    if conditions is None:
        return True
    fence = 0 if row.owner is None else row.owner.fence
    return conditions.after in (None, row.known.head) and (
        conditions.fence is None or conditions.fence >= fence
    )
