"""What a transaction of the journal writes to PostgreSQL, from a staged group.

Owns the statements that write. The rows of all events and sessions go in one statement, as arrays,
and so do those of each other table. Such a statement is prepared (`Address.connect`), so that one
message has all of its rows: a writer that is stopped while it sends them holds no lock for longer
than the server lets it (`schema.IDLE_MS`). `COPY`, a series of statements without an answer in
between, or one that is parsed in the same go could be held open for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import field

from quarterdeck.journal.postgres.address import Connection
from quarterdeck.journal.postgres.arrays import byteas, int4s, int8s
from quarterdeck.journal.transaction import Group, Known, UsageStage
from quarterdeck.journal.usage import COLUMNS, limit_row, usage_row
from quarterdeck.journal.views import VIEW_VERSION
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import LimitState

BLOB_BYTES = 1024 * 1024
"""A line of more bytes is in a table of its own."""

_encoder = msgspec.json.Encoder()

_WRITE = """
    WITH added AS (
      INSERT INTO quarterdeck.events (position, session, seq, at, size, json)
      SELECT * FROM unnest(
        %b::bigint[], %b::int[], %b::bigint[], %b::bigint[], %b::int[], %b::bytea[]
      )
    ), changed AS (
      UPDATE quarterdeck.sessions s SET head = c.head, updated = c.updated, said = c.said,
        sent = c.sent, archived = c.archived, deleted = c.deleted, run_machine = c.run_machine,
        owner = c.owner, fence = c.fence, folded = %b, view = coalesce(c.view, s.view)
      FROM unnest(
        %b::int[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::boolean[],
        %b::boolean[], %b::text[], %b::text[], %b::bigint[], %b::bytea[]
      ) c (number, head, updated, said, sent, archived, deleted, run_machine, owner, fence, view)
      WHERE s.number = c.number
    )
    UPDATE quarterdeck.ticket SET position = %b, seal = %b, tick = %b
"""

_AUDIT = "INSERT INTO quarterdeck.audit SELECT * FROM unnest(%b::bigint[], %b::int[])"
_CHAIN = (
    "INSERT INTO quarterdeck.chain"
    " SELECT * FROM unnest(%b::bigint[], %b::int[], %b::bytea[], %b::bytea[])"
)
_OPEN = (
    "INSERT INTO quarterdeck.asks (opened, session, ask)"
    " SELECT * FROM unnest(%b::bigint[], %b::int[], %b::text[])"
)
_SETTLE = (
    "UPDATE quarterdeck.asks a SET settled = new.settled"
    " FROM unnest(%b::bigint[], %b::int[], %b::text[]) new (settled, session, ask)"
    " WHERE a.session = new.session AND a.ask = new.ask AND a.settled IS NULL"
)
_PROMPTS = (
    "INSERT INTO quarterdeck.prompts SELECT * FROM unnest(%b::int[], %b::text[])"
    " ON CONFLICT DO NOTHING"
)
_SNAPSHOT = (
    "INSERT INTO quarterdeck.snapshots VALUES (%s, %s, %s)"
    " ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, data = excluded.data"
)
_KEY = 5
"""How many columns name a row of usage."""
_TYPES = ", ".join(
    f"%s::{kind}[]"
    for kind in (
        *("bigint", "int", "text", "text", "text"),
        *("double precision" if name.endswith("_usd") else "bigint" for name in COLUMNS),
    )
)
_SUMS = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in COLUMNS)
_ADD_USAGE = (
    f"INSERT INTO quarterdeck.usage AS usage SELECT * FROM unnest({_TYPES})"  # noqa: S608 - ours
    f" ON CONFLICT (slot, session, project, machine, model) DO UPDATE SET {_SUMS}"
)
_TELL_LIMIT = (
    "INSERT INTO quarterdeck.account_limits AS known SELECT * FROM unnest(%s::text[], %s::text[],"
    " %s::text[], %s::bigint[], %s::bigint[], %s::double precision[], %s::text[])"
    " ON CONFLICT (machine, name) DO UPDATE SET status = excluded.status, at = excluded.at,"
    " resets_at = excluded.resets_at, used = excluded.used, session = excluded.session"
    " WHERE excluded.at >= known.at"
)


class PostgresGroup(Group):
    """A group with the rows of its events, and the owners of its sessions."""

    tick: int = 0
    events: list[Stored] = field(default_factory=list)
    owners: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The hub and the fence of each session."""


def write_group(connection: Connection, group: PostgresGroup) -> None:
    """Write the staged changes, within the open transaction."""
    for number in group.forgotten:
        _forget(connection, number)
    numbers = {session: known.number for session, known in group.sessions.items()}
    small = [each.json if len(each.json) <= BLOB_BYTES else None for each in group.events]
    changed = [
        _row(group, session, known, known.view)
        for session, known in group.sessions.items()
        if known.view is not None
    ]
    connection.execute(
        _WRITE,
        (
            int8s([each.position for each in group.events]),
            int4s([numbers[each.session] for each in group.events]),
            int8s([each.seq for each in group.events]),
            int8s([each.at for each in group.events]),
            int4s([len(each.json) for each in group.events]),
            byteas(small),
            VIEW_VERSION,
            *(_columns(changed) if changed else [[] for _ in range(11)]),
            group.position,
            group.seal,
            group.tick,
        ),
    )
    for each in group.events:
        if len(each.json) > BLOB_BYTES:
            connection.execute(
                "INSERT INTO quarterdeck.blobs VALUES (%s, %b)", (each.position, each.json)
            )
    if group.audit:
        positions, of = _columns(group.audit)
        connection.execute(_AUDIT, (int8s(positions), int4s(of)))
    if group.chain:
        positions, of, digests, seals = _columns(group.chain)
        values = int8s(positions), int4s(of), byteas(digests), byteas(seals)
        connection.execute(_CHAIN, values)
    for statement, rows in ((_OPEN, group.opened), (_SETTLE, group.settled)):
        if rows:
            positions, of, asks = _columns(rows)
            connection.execute(statement, (int8s(positions), int4s(of), asks))
    add_prompts(connection, group.prompts)
    for number, snapshot in group.snapshots.items():
        if snapshot is None:
            connection.execute("DELETE FROM quarterdeck.snapshots WHERE session = %s", (number,))
        else:
            connection.execute(_SNAPSHOT, (number, *snapshot))
    add_usage(connection, group.usage)
    write_limits(connection, group.usage)
    group.events.clear()
    group.rewrite.clear()
    group.clear()


def add_usage(connection: Connection, stage: UsageStage) -> None:
    """Add the usage of a transaction, or of a whole session, to the sums."""
    sums: dict[tuple[object, ...], list[Any]] = {}
    for each in stage.shares:
        row = usage_row(each)
        if (found := sums.get(row[:_KEY])) is None:
            sums[row[:_KEY]] = list(row[_KEY:])
        else:
            found[:] = [one + other for one, other in zip(found, row[_KEY:], strict=True)]
    if sums:
        rows = [(*key, *values) for key, values in sums.items()]
        connection.execute(_ADD_USAGE.encode(), _columns(rows))


def write_limits(connection: Connection, stage: UsageStage) -> None:
    """Write the limits of accounts. Only who has the ticket calls this."""
    newest: dict[tuple[str, str], LimitState] = {}
    for each in stage.limits:
        key = each.machine, each.limit
        if key not in newest or each.at >= newest[key].at:
            newest[key] = each
    if newest:
        connection.execute(_TELL_LIMIT, _columns([limit_row(each) for each in newest.values()]))


def add_prompts(connection: Connection, prompts: Sequence[tuple[int, str]]) -> None:
    """Add the ids of prompts, each with the number of its session."""
    if prompts:
        numbers, names = _columns(prompts)
        connection.execute(_PROMPTS, (int4s(numbers), names))


def view_bytes(view: SessionView) -> bytes:
    """A view as it is stored."""
    return _encoder.encode(view)


def run_machine(view: SessionView) -> str | None:
    """The machine of a session's run."""
    return None if view.run is None or view.deleted else view.machine or LOCAL


def _row(group: PostgresGroup, session: str, known: Known, view: SessionView) -> tuple[Any, ...]:
    return (
        known.number,
        known.head,
        view.updated,
        view.said,
        view.sent,
        view.archived,
        view.deleted,
        run_machine(view),
        *group.owners.get(session, ("", 0)),
        view_bytes(view) if session in group.rewrite else None,
    )


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _forget(connection: Connection, number: int) -> None:
    connection.execute(
        "DELETE FROM quarterdeck.blobs b USING quarterdeck.events e"
        " WHERE e.position = b.position AND e.session = %s",
        (number,),
    )
    for table in ("events", "asks", "audit", "prompts", "snapshots"):
        delete = f"DELETE FROM quarterdeck.{table} WHERE session = %s"  # noqa: S608 - these five
        connection.execute(delete.encode(), (number,))
