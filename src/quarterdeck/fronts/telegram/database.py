"""The one SQLite file of the Telegram front, and its transactions.

Everything that the front must not forget is in one file, so that an update and all that it caused
are one commit: `with database.transaction(): …` around both. Parts of the front create their own
tables with `create`. Calls are short and made from the event loop's thread: what is between two
`await` is then one piece for every other task.

It knows no table and nothing of Telegram.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from quarterdeck.runtime.sqlite_files import open_sqlite, transaction

FILE = "telegram.db"


class SharedState(Protocol):
    """Where several hubs keep the file, of which one runs the front."""

    async def join(self, connection: sqlite3.Connection) -> None:
        """Have what the hub had that ran the front before. The tables are there."""

    async def keep(self) -> None:
        """Have all hubs know what was stored so far. Raises `JournalError`.

        It also fails if another hub runs the front now: then this one must not go on.
        """


class Database:
    """The file. Raises `sqlite3.Error` when it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        """Open or create it. A damaged file is moved aside, and a new one is begun."""
        self.path = path
        # NORMAL: not to wait for the disk in the event loop.
        self.connection = open_sqlite(path, synchronous="NORMAL")
        self.connection.execute("PRAGMA cache_size = -512")

    def create(self, schema: str) -> None:
        """Create tables that are not there yet; `schema` says `IF NOT EXISTS`."""
        self.connection.executescript(schema)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. Inside another transaction it is a part of that one.

        The block must not `await`: another task's writes would become a part of it.
        """
        if self.connection.in_transaction:
            yield self.connection
            return
        with transaction(self.connection):
            yield self.connection

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
