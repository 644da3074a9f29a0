"""The sums of usage in the journal's file.

Owns the two tables that `quarterdeck.journal.usage` fills: `usage`, a row for each quarter of an
hour, session, project, machine and model; and `account_limits`, the last report of each limit. The
writer adds to them in the transaction of the events. Rows outlive their session.
"""

from __future__ import annotations

import sqlite3

from quarterdeck.journal.transaction import UsageStage
from quarterdeck.journal.usage import COLUMNS, limit_of, limit_row, slots, sum_row, usage_row
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow

SCHEMA = """
    -- What was used, in slots of a quarter of an hour. Rows stay when their session is deleted.
    CREATE TABLE usage (
      slot INTEGER NOT NULL,
      session INTEGER NOT NULL,
      project TEXT NOT NULL,
      machine TEXT NOT NULL,
      model TEXT NOT NULL,
      cost_usd REAL NOT NULL,
      estimated_usd REAL NOT NULL,
      input INTEGER NOT NULL,
      output INTEGER NOT NULL,
      cache_read INTEGER NOT NULL,
      cache_write INTEGER NOT NULL,
      turns INTEGER NOT NULL,
      failed INTEGER NOT NULL,
      tool_calls INTEGER NOT NULL,
      asks INTEGER NOT NULL,
      waiting_ms INTEGER NOT NULL,
      PRIMARY KEY (slot, session, project, machine, model)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX usage_of_session ON usage (session);

    CREATE TABLE account_limits (
      machine TEXT NOT NULL,
      name TEXT NOT NULL,
      status TEXT NOT NULL,
      at INTEGER NOT NULL,
      resets_at INTEGER,
      used REAL,
      session TEXT NOT NULL,
      PRIMARY KEY (machine, name)
    ) STRICT, WITHOUT ROWID;
    """

_PLACES = ", ".join("?" * (5 + len(COLUMNS)))
_SUMS = ", ".join(f"{name} = {name} + excluded.{name}" for name in COLUMNS)
# The names are those of this module, and values are bound.
_ADD = f"INSERT INTO usage VALUES ({_PLACES}) ON CONFLICT DO UPDATE SET {_SUMS}"  # noqa: S608
_TELL = (
    "INSERT INTO account_limits VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " status = excluded.status, at = excluded.at, resets_at = excluded.resets_at,"
    " used = excluded.used, session = excluded.session WHERE excluded.at >= at"
)

_KEYS = {
    UsageBy.DAY: ("u.slot", "usage u"),
    UsageBy.PROJECT: ("u.project", "usage u"),
    UsageBy.MODEL: ("u.model", "usage u"),
    UsageBy.MACHINE: ("u.machine", "usage u"),
    UsageBy.SESSION: ("s.session", "usage u JOIN sessions s ON s.number = u.session"),
}


def write_usage(stage: UsageStage, connection: sqlite3.Connection) -> None:
    """Write what a transaction adds, within it."""
    if stage.shares:
        connection.executemany(_ADD, map(usage_row, stage.shares))
    if stage.limits:
        connection.executemany(_TELL, map(limit_row, stage.limits))
    stage.clear()


def forget(connection: sqlite3.Connection, number: int) -> None:
    """Delete the sums of a session, to compute them again from its events."""
    connection.execute("DELETE FROM usage WHERE session = ?", (number,))


def read_usage(
    connection: sqlite3.Connection, by: UsageBy, since: int | None, until: int | None
) -> list[UsageRow]:
    """The usage between two times, in order."""
    first, end = slots(since, until)
    sums = ", ".join(f"sum(u.{name}) AS {name}" for name in COLUMNS)
    key, source = _KEYS[by]
    # As above.
    query = (
        f"SELECT {key} AS key, {sums} FROM {source}"  # noqa: S608
        " WHERE u.slot >= ?1 AND u.slot < ?2 GROUP BY key ORDER BY key"
    )
    if by is UsageBy.DAY:  # one conversion for each slot, not for each row
        days = ", ".join(f"sum({name})" for name in COLUMNS)
        day = "date(key * 900, 'unixepoch', 'localtime')"
        query = f"SELECT {day} AS day, {days} FROM ({query}) GROUP BY day ORDER BY day"  # noqa: S608
    found = connection.execute(query, (first, end)).fetchall()
    return [sum_row(row[0], row[1:]) for row in found]


def read_limits(connection: sqlite3.Connection) -> list[LimitState]:
    """The limits of each account."""
    rows = connection.execute(
        "SELECT machine, name, status, at, resets_at, used, session FROM account_limits"
        " ORDER BY machine, name"
    ).fetchall()
    return list(map(limit_of, rows))
