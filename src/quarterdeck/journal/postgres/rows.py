"""What a transaction of the journal writes to PostgreSQL, from a staged group.

Owns the statements that write. The rows of all events and sessions go in one statement, as arrays:
the whole statement is at the server before it begins, so that a writer that is stopped in the
middle holds no lock for longer than the server lets it (`schema.IDLE_MS`). `COPY` would be faster,
and could be held open for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import field

from quarterdeck.journal.postgres.address import Connection
from quarterdeck.journal.postgres.arrays import byteas, int4s, int8s
from quarterdeck.journal.transaction import Group, Known, UsageStage
from quarterdeck.journal.usage_rows import COLUMNS, limit_row, usage_row
from quarterdeck.journal.views import VIEW_VERSION
from quarterdeck.protocol.machines import LOCAL
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored import Stored

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

_PLACES = ", ".join(["%s"] * (5 + len(COLUMNS)))
_SUMS = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in COLUMNS)
_ADD_USAGE = (
    f"INSERT INTO quarterdeck.usage AS usage VALUES ({_PLACES})"  # noqa: S608 - names of ours
    f" ON CONFLICT (slot, session, project, machine, model) DO UPDATE SET {_SUMS}"
)
_TELL_LIMIT = (
    "INSERT INTO quarterdeck.account_limits AS known VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (machine, name) DO UPDATE SET status = excluded.status, at = excluded.at,"
    " resets_at = excluded.resets_at, used = excluded.used, session = excluded.session"
    " WHERE excluded.at >= known.at"
)
_SETTLE = (
    "UPDATE quarterdeck.asks SET settled = %s WHERE session = %s AND ask = %s AND settled IS NULL"
)
_SNAPSHOT = (
    "INSERT INTO quarterdeck.snapshots VALUES (%s, %s, %s)"
    " ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, data = excluded.data"
)
ADD_PROMPT = "INSERT INTO quarterdeck.prompts VALUES (%s, %s) ON CONFLICT DO NOTHING"


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
        (session, known) for session, known in group.sessions.items() if known.view is not None
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
            *_columns([_row(group, session, known, known.view) for session, known in changed]),
            group.position,
            group.seal,
            group.tick,
        ),
    )
    large = [(each.position, each.json) for each in group.events if len(each.json) > BLOB_BYTES]
    for statement, rows in (
        ("INSERT INTO quarterdeck.blobs VALUES (%s, %b)", large),
        ("INSERT INTO quarterdeck.audit VALUES (%s, %s)", group.audit),
        ("INSERT INTO quarterdeck.chain VALUES (%s, %s, %b, %b)", group.chain),
        ("INSERT INTO quarterdeck.asks VALUES (%s, %s, %s, NULL)", group.opened),
        (_SETTLE, group.settled),
        (ADD_PROMPT, group.prompts),
    ):
        _write_many(connection, statement, rows)
    for number, snapshot in group.snapshots.items():
        if snapshot is None:
            connection.execute("DELETE FROM quarterdeck.snapshots WHERE session = %s", (number,))
        else:
            connection.execute(_SNAPSHOT, (number, *snapshot))
    write_usage(connection, group.usage)
    group.events.clear()
    group.rewrite.clear()
    group.clear()


def write_usage(connection: Connection, stage: UsageStage) -> None:
    """Write the usage of a transaction."""
    _write_many(connection, _ADD_USAGE, [usage_row(each) for each in stage.shares])
    _write_many(connection, _TELL_LIMIT, [limit_row(each) for each in stage.limits])


def view_bytes(view: SessionView) -> bytes:
    """A view as it is stored."""
    return _encoder.encode(view)


def run_machine(view: SessionView) -> str | None:
    """The machine of a session's run."""
    return None if view.run is None or view.deleted else view.machine or LOCAL


def _row(
    group: PostgresGroup, session: str, known: Known, view: SessionView | None
) -> tuple[Any, ...]:
    if view is None:
        raise AssertionError("only sessions with a view are written")
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
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(11)]


def _write_many(connection: Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    if len(rows) == 1:
        connection.execute(statement.encode(), rows[0])
    elif rows:
        with connection.cursor() as cursor:
            cursor.executemany(statement.encode(), rows)


def _forget(connection: Connection, number: int) -> None:
    connection.execute(
        "DELETE FROM quarterdeck.blobs b USING quarterdeck.events e"
        " WHERE e.position = b.position AND e.session = %s",
        (number,),
    )
    for table in ("events", "asks", "audit", "prompts", "snapshots"):
        delete = f"DELETE FROM quarterdeck.{table} WHERE session = %s"  # noqa: S608 - these five
        connection.execute(delete.encode(), (number,))
