"""What is remembered of schedules: their states, and all starts.

A start is recorded before anything is started, in the same transaction that moves the cursor past
its planned time: nothing is lost when the hub is killed. Its id follows from the schedule and the
planned time, and the id of its session from that: nothing is started twice.

Blocking, and safe to use from several threads. It knows neither clocks nor sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.schedules import Firing, FiringState
from quarterdeck.runtime.shared_tables import Mirror
from quarterdeck.runtime.sqlite_files import SqliteFile, again

FILE = "schedules.db"
KEPT = 500
"""Starts of each schedule that are kept. Those of the last day are kept as well, because their ids
keep a repeated request from a second start."""
KEPT_SECONDS = 86400.0
MOST_KEPT = 20_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS states (
  name TEXT PRIMARY KEY,
  plan TEXT NOT NULL,
  anchor REAL NOT NULL,
  cursor REAL NOT NULL,
  paused INTEGER,
  paused_by TEXT NOT NULL,
  written_paused INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS firings (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  schedule TEXT NOT NULL,
  made REAL NOT NULL,
  open INTEGER NOT NULL,
  body BLOB NOT NULL,
  prompt TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS firings_of ON firings (schedule, number);
CREATE INDEX IF NOT EXISTS firings_open ON firings (open) WHERE open;
"""

OPEN = frozenset({FiringState.WAITING, FiringState.STARTED})


class State(Value):
    """What is remembered of a schedule. Times are in seconds since 1970."""

    plan: str
    """The times as they were written; when they change, the schedule begins anew."""
    anchor: float
    """When it began; intervals are counted from here."""
    cursor: float
    """All planned times up to here are decided."""
    paused: bool | None = None
    """What a person chose; None: as it was written."""
    paused_by: str = ""
    written_paused: bool = False
    """Whether it was written as paused when the person chose."""


class Start(Value):
    """A start with its prompt, which is kept until the session has it."""

    firing: Firing
    prompt: str | None


class Store:
    """The file. Raises `sqlite3.Error` when it cannot be read or written."""

    def __init__(self, folder: Path, mirror: Mirror | None = None) -> None:
        """Open it. A damaged file is moved aside. `mirror`: several hubs have the same."""
        # What a person or a sender was told must not be lost in a power failure: a pause, a
        # request that was taken.
        self._file = SqliteFile(folder / FILE, _SCHEMA, synchronous="FULL", mirror=mirror)
        self.look = self._file.look

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # --- states --------------------------------------------------------------------------------

    @again
    def remove(self, name: str) -> None:
        """Delete the state and the starts of a schedule."""
        with self._file.write_transaction() as db:
            db.execute("DELETE FROM states WHERE name = ?", (name,))
            db.execute("DELETE FROM firings WHERE schedule = ?", (name,))

    def states(self) -> dict[str, State]:
        """The states of all schedules, by name."""
        with self._file.read_transaction() as db:
            rows = db.execute(
                "SELECT name, plan, anchor, cursor, paused, paused_by, written_paused FROM states"
            )
            return {
                name: State(
                    plan=plan,
                    anchor=anchor,
                    cursor=cursor,
                    paused=None if paused is None else bool(paused),
                    paused_by=by,
                    written_paused=bool(written),
                )
                for name, plan, anchor, cursor, paused, by, written in rows
            }

    @again
    def put_state(self, name: str, state: State) -> None:
        """Store the state of a schedule."""
        with self._file.write_transaction() as db:
            _put_state(db, name, state)

    @again
    def keep_only(self, names: Collection[str]) -> None:
        """Delete the states and the starts of schedules that are gone."""
        with self._file.write_transaction() as db:
            for table, column in (("states", "name"), ("firings", "schedule")):
                rows = db.execute(f"SELECT DISTINCT {column} FROM {table}")  # noqa: S608 - ours
                for gone in {str(row[0]) for row in rows} - set(names):
                    db.execute(f"DELETE FROM {table} WHERE {column} = ?", (gone,))  # noqa: S608

    def confirm(self) -> None:
        """Raises `StaleLease` if another hub starts what is due by now."""
        self._file.confirm()

    # --- starts --------------------------------------------------------------------------------

    @again
    def record(self, name: str, state: State | None, starts: Iterable[Start]) -> list[Start]:
        """Store starts, and the state that they lead to; returns those that are new."""
        new: list[Start] = []
        with self._file.write_transaction() as db:
            if state is not None:
                _put_state(db, name, state)
            for start in starts:
                firing = start.firing
                added = db.execute(
                    "INSERT OR IGNORE INTO firings (id, schedule, made, open, body, prompt)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        firing.id,
                        name,
                        firing.made / 1000,
                        firing.state in OPEN,
                        msgspec.json.encode(firing),
                        start.prompt,
                    ),
                )
                if added.rowcount:
                    new.append(start)
            if new:
                _prune(db, name, new[-1].firing.made / 1000)
        return new

    @again
    def change(self, firing: Firing) -> None:
        """Store what has become of a start. Its prompt is not needed any more."""
        with self._file.write_transaction() as db:
            db.execute(
                "UPDATE firings SET open = ?, body = ?, prompt = NULL WHERE id = ?",
                (firing.state in OPEN, msgspec.json.encode(firing), firing.id),
            )

    def open_starts(self) -> list[Start]:
        """All starts that are not over, oldest first."""
        with self._file.read_transaction() as db:
            rows = db.execute(
                "SELECT body, prompt FROM firings WHERE open ORDER BY number"
            ).fetchall()
        return [Start(firing=_firing(body), prompt=prompt) for body, prompt in rows]

    def find(self, id_: str) -> Firing | None:
        """A start by its id."""
        with self._file.read_transaction() as db:
            row = db.execute("SELECT body FROM firings WHERE id = ?", (id_,)).fetchone()
        return None if row is None else _firing(row[0])

    def firings(self, name: str, *, before: str | None = None, limit: int = 50) -> list[Firing]:
        """The starts of a schedule, newest first."""
        with self._file.read_transaction() as db:
            rows = db.execute(
                "SELECT body FROM firings WHERE schedule = ? AND number <"
                " coalesce((SELECT number FROM firings WHERE id = ?), 9223372036854775807)"
                " ORDER BY number DESC LIMIT ?",
                (name, before, limit),
            ).fetchall()
        return [_firing(body) for (body,) in rows]

    def since(self, name: str, since: float) -> list[Firing]:
        """The starts of a schedule that were recorded since a time."""
        with self._file.read_transaction() as db:
            rows = db.execute(
                "SELECT body FROM firings WHERE schedule = ? AND made >= ? ORDER BY number DESC"
                " LIMIT ?",
                (name, since, MOST_KEPT),
            ).fetchall()
        return [_firing(body) for (body,) in rows]


def _firing(body: bytes) -> Firing:
    return msgspec.json.decode(body, type=Firing)


def _put_state(db: sqlite3.Connection, name: str, state: State) -> None:
    db.execute(
        "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            name,
            state.plan,
            state.anchor,
            state.cursor,
            state.paused,
            state.paused_by,
            state.written_paused,
        ),
    )


def _prune(db: sqlite3.Connection, name: str, now: float) -> None:
    """Delete old starts that are over."""
    for most, older_than in ((KEPT, now - KEPT_SECONDS), (MOST_KEPT, now + KEPT_SECONDS)):
        db.execute(
            "DELETE FROM firings WHERE schedule = ? AND NOT open AND made < ? AND number <="
            " (SELECT number FROM firings WHERE schedule = ? ORDER BY number DESC"
            "  LIMIT 1 OFFSET ?)",
            (name, older_than, name, most),
        )
