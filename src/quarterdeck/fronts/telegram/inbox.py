"""Updates that came from Telegram and are not done yet.

They are kept until they are done, so that none is lost, and their numbers for a while after that,
so that none is handled twice. Calls are short and block; `Database` says how they become one commit
with what an update caused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.database import Database

HANDLED_KEPT = 10_000
"""Numbers of updates that are done. Telegram gives an update again only until it is confirmed."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS inbox (
  update_id INTEGER PRIMARY KEY, lane TEXT NOT NULL, body BLOB NOT NULL, at REAL NOT NULL,
  begun INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS handled (update_id INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT;
"""


class Waiting(Value):
    """An update that is not done yet."""

    update_id: int
    lane: str
    body: bytes
    begun: bool
    """It was begun before: what it caused may have happened already."""


_BEGUN, _ANSWERS = 1, 2
"""How far an update that is not done has come."""


class Inbox:
    """The tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.create(_SCHEMA)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self.database.connection

    def receive(self, rows: Iterable[tuple[int, str, bytes]], at: float) -> list[int]:
        """Store updates that came: number, lane, body. Gives the numbers of those that are new."""
        new: list[int] = []
        connection = self._connection
        # Telegram never gives them again after this: a power failure must not lose them.
        if not connection.in_transaction:
            connection.execute("PRAGMA synchronous = FULL")
        try:
            with self.database.transaction():
                for update_id, lane, body in rows:
                    if self._is_known(update_id):
                        continue
                    connection.execute(
                        "INSERT INTO inbox (update_id, lane, body, at) VALUES (?, ?, ?, ?)",
                        (update_id, lane, body, at),
                    )
                    new.append(update_id)
        finally:
            if not connection.in_transaction:
                connection.execute("PRAGMA synchronous = NORMAL")
        return new

    def _is_known(self, update_id: int) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM handled WHERE update_id = ?1"
            " UNION ALL SELECT 1 FROM inbox WHERE update_id = ?1",
            (update_id,),
        ).fetchone()
        return found is not None

    def waiting_updates(self) -> list[Waiting]:
        """The updates that are not done, in their order."""
        rows = self._connection.execute(
            "SELECT update_id, lane, body, begun FROM inbox ORDER BY at, update_id"
        ).fetchall()
        return [_waiting_update(row) for row in rows]

    def update(self, update_id: int) -> Waiting | None:
        """An update that is not done."""
        row = self._connection.execute(
            "SELECT update_id, lane, body, begun FROM inbox WHERE update_id = ?", (update_id,)
        ).fetchone()
        return None if row is None else _waiting_update(row)

    def in_lane(self, lane: str) -> list[Waiting]:
        """The updates of a lane that are not done."""
        rows = self._connection.execute(
            "SELECT update_id, lane, body, begun FROM inbox WHERE lane = ? ORDER BY at, update_id",
            (lane,),
        ).fetchall()
        return [_waiting_update(row) for row in rows]

    def begin(self, update_id: int) -> None:
        """An update is being handled."""
        self._reach(update_id, _BEGUN)

    def answer(self, update_id: int) -> None:
        """An update is an answer to an open question, which is sent to the hub next."""
        self._reach(update_id, _ANSWERS)

    def answers(self, update_id: int) -> bool:
        """Whether an update was an answer to an open question when it was handled before."""
        row = self._connection.execute(
            "SELECT begun FROM inbox WHERE update_id = ?", (update_id,)
        ).fetchone()
        return row is not None and row[0] == _ANSWERS

    def _reach(self, update_id: int, stage: int) -> None:
        self._connection.execute(
            "UPDATE inbox SET begun = max(begun, ?) WHERE update_id = ?", (stage, update_id)
        )

    def mark_done(self, update_id: int, at: float) -> None:
        """An update is done. In the transaction of what it caused, if that is one."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM inbox WHERE update_id = ?", (update_id,))
            connection.execute("INSERT OR REPLACE INTO handled VALUES (?, ?)", (update_id, at))

    def forget(self) -> None:
        """Forget all numbers, and what is not done: they belong to another bot."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM handled")
            connection.execute("DELETE FROM inbox")

    def prune(self) -> None:
        """Forget the oldest numbers."""
        self._connection.execute(
            "DELETE FROM handled WHERE update_id NOT IN"
            " (SELECT update_id FROM handled ORDER BY at DESC LIMIT ?)",
            (HANDLED_KEPT,),
        )


def _waiting_update(row: tuple[int, str, bytes, int]) -> Waiting:
    return Waiting(update_id=row[0], lane=row[1], body=row[2], begun=bool(row[3]))
