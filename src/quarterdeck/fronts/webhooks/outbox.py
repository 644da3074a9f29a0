"""Undelivered payloads on disk: the cursor of each endpoint, and the payloads that wait.

A small file beside the journal. A payload enters it in the same transaction that moves the cursor
past its event, and leaves it when it was delivered or given up: nothing is lost when the hub is
killed, and no payload is created twice. The record of a delivery may be lost: then the payload is
delivered again, with the same id.

Blocking, and safe to use from several threads. It knows neither HTTP nor payloads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

from quarterdeck.domain.structs import Value
from quarterdeck.runtime.shared_tables import Mirror
from quarterdeck.runtime.sqlite_files import SqliteFile, again

FILE = "webhooks.db"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cursors (
  name TEXT PRIMARY KEY, epoch TEXT NOT NULL, position INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS waiting (
  name TEXT NOT NULL,
  id TEXT NOT NULL,
  body BLOB NOT NULL,
  at REAL NOT NULL,
  tries INTEGER NOT NULL,
  due REAL NOT NULL,
  PRIMARY KEY (name, id)
) STRICT;
CREATE INDEX IF NOT EXISTS waiting_due ON waiting (name, due);
"""


class Waiting(Value):
    """A payload that has not been delivered yet."""

    id: str
    body: bytes
    at: float
    """When it happened, in seconds since 1970."""
    tries: int
    due: float


class Outbox:
    """The file. Raises `sqlite3.Error` when it cannot be written."""

    def __init__(self, folder: Path, mirror: Mirror | None = None) -> None:
        """Open it. A damaged file is moved aside, with its cursors and undelivered payloads.

        `mirror`: another hub may go on with it.
        """
        # NORMAL: after a power failure the newest entries are missing, and created again.
        self._file = SqliteFile(folder / FILE, _SCHEMA, synchronous="NORMAL", mirror=mirror)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @again
    def begin(self, name: str, epoch: str, now: int) -> int:
        """The cursor of an endpoint in this journal. A new endpoint begins at `now`."""
        with self._file.write_transaction() as db:
            row = db.execute(
                "SELECT position FROM cursors WHERE name = ? AND epoch = ?", (name, epoch)
            ).fetchone()
            # Beyond the end: the journal was restored from a backup.
            if row is not None and row[0] <= now:
                return int(row[0])
            _move(db, name, epoch, now)
            return now

    @again
    def put(self, name: str, epoch: str, position: int, waiting: Waiting) -> None:
        """Store a payload for an endpoint, and move its cursor."""
        with self._file.write_transaction() as db:
            _move(db, name, epoch, position)
            db.execute(
                "INSERT OR IGNORE INTO waiting VALUES (?, ?, ?, ?, ?, ?)",
                (name, waiting.id, waiting.body, waiting.at, waiting.tries, waiting.due),
            )

    @again
    def move(self, name: str, epoch: str, position: int) -> None:
        """Move an endpoint's cursor past events that it does not want."""
        with self._file.write_transaction() as db:
            _move(db, name, epoch, position)

    def next(self, name: str) -> Waiting | None:
        """The payload that is due first."""
        with self._file.read_transaction() as db:
            row = db.execute(
                "SELECT id, body, at, tries, due FROM waiting WHERE name = ?"
                " ORDER BY due, at, id LIMIT 1",
                (name,),
            ).fetchone()
        if row is None:
            return None
        id_, body, at, tries, due = row
        return Waiting(id=id_, body=body, at=at, tries=tries, due=due)

    @again
    def reschedule(self, name: str, id_: str, tries: int, due: float) -> None:
        """Schedule a retry."""
        with self._file.write_transaction() as db:
            db.execute(
                "UPDATE waiting SET tries = ?, due = ? WHERE name = ? AND id = ?",
                (tries, due, name, id_),
            )

    @again
    def remove(self, name: str, id_: str) -> None:
        """Remove a payload that was delivered or given up."""
        with self._file.write_transaction() as db:
            db.execute("DELETE FROM waiting WHERE name = ? AND id = ?", (name, id_))

    def count(self, name: str) -> int:
        """The number of waiting payloads."""
        with self._file.read_transaction() as db:
            row = db.execute("SELECT count(*) FROM waiting WHERE name = ?", (name,)).fetchone()
        return int(row[0])

    @again
    def keep_only(self, names: Collection[str]) -> None:
        """Delete the data of removed endpoints."""
        with self._file.write_transaction() as db:
            known = {str(row[0]) for row in db.execute("SELECT name FROM cursors")}
            for name in known - set(names):
                db.execute("DELETE FROM waiting WHERE name = ?", (name,))
                db.execute("DELETE FROM cursors WHERE name = ?", (name,))


def _move(db: sqlite3.Connection, name: str, epoch: str, position: int) -> None:
    db.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (name, epoch, position))
