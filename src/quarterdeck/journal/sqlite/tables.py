"""The journal's file as tables, for `transfer`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from quarterdeck.domain.errors import UsageError
from quarterdeck.journal.chain import Link
from quarterdeck.journal.sqlite.file import (
    Lock,
    connect,
    explained_errors,
    prepare,
    transaction,
)
from quarterdeck.journal.sqlite.reader import Reader
from quarterdeck.journal.sqlite.writer import Writer
from quarterdeck.journal.transfer import TABLES, Row


@contextmanager
def sqlite_tables(path: Path, *, create: bool = False) -> Iterator[SqliteTables]:
    """The tables of a file that no hub uses. Raises `JournalError`, `UsageError`."""
    if not create and not path.is_file():
        raise UsageError(f"there is no journal at {path}")
    lock = Lock(path)
    try:
        prepare(path)
        with explained_errors(path):
            Writer(path).close()  # what an older version left is brought up to date
        with (
            explained_errors(path),
            closing(connect(path)) as connection,
            transaction(connection),
        ):
            yield SqliteTables(path, connection)
    finally:
        lock.release()


class SqliteTables:
    """The tables, within a transaction."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.name = str(path)
        self._connection = connection
        self._reader = Reader(path, connection)

    def check_unused(self) -> None:
        """Nothing: its lock is held."""

    def epoch(self) -> str:
        """The id of the journal."""
        return str(self._connection.execute("SELECT epoch FROM journal").fetchone()[0])

    def is_empty(self) -> bool:
        """Whether nothing was ever stored."""
        ask = "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM shared)"
        return int(self._connection.execute(ask).fetchone()[0]) == 0

    def tick(self) -> int:
        """The last number of fences and versions."""
        return int(self._connection.execute("SELECT tick FROM ticks").fetchone()[0])

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table, by its key."""
        columns = TABLES[table]
        order = ", ".join(str(at + 1) for at in range(min(5, len(columns))))
        query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}"  # noqa: S608 - ours
        with closing(self._connection.execute(query)) as found:
            yield from found

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows."""
        columns = TABLES[table]
        places = ", ".join("?" * len(columns))
        insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - ours
        self._connection.executemany(insert, rows)

    def finish(self, epoch: str, tick: int) -> None:
        """Set what is not in a table."""
        self._connection.execute("UPDATE journal SET epoch = ?", (epoch,))
        self._connection.execute("UPDATE ticks SET tick = ?", (tick,))

    def links(self, after: int, limit: int) -> list[Link]:
        """A page of the audit log's chain."""
        return self._reader.links(after, limit)
