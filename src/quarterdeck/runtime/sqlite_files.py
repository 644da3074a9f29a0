"""Small SQLite files beside the journal: what a front must not forget.

Owns how such a file is opened: private to its user, in WAL mode, and moved aside if it is damaged.
It knows no table. Blocking.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

log = logging.getLogger(__name__)

BUSY_SECONDS = 5.0

Synchronous = Literal["FULL", "NORMAL"]
"""`NORMAL`: a killed process loses nothing, but a power failure may lose the newest commits."""


def open_sqlite(path: Path, schema: str = "", *, synchronous: Synchronous) -> sqlite3.Connection:
    """Open or create a file. A damaged one is moved aside, and a new one is begun.

    Without transactions of its own, and for all threads. Raises `sqlite3.Error`, `OSError`.
    """
    try:
        return _open(path, schema, synchronous)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        aside = path.with_suffix(".damaged")
        log.error("%s is damaged (%s); it is moved aside as %s", path, error, aside.name)
        path.replace(aside)
        for left in ("-wal", "-shm"):
            path.with_name(path.name + left).unlink(missing_ok=True)
        return _open(path, schema, synchronous)


def _open(path: Path, schema: str, synchronous: Synchronous) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.executescript(schema)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise


class SqliteFile:
    """A file that several threads use, one at a time."""

    def __init__(self, path: Path, schema: str, *, synchronous: Synchronous) -> None:
        """Open it."""
        self._mutex = threading.Lock()
        self._connection = open_sqlite(path, schema, synchronous=synchronous)

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """The file, for reading or for one statement. Take all rows inside the block."""
        with self._mutex:
            yield self._connection

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """The file, in a transaction."""
        with self._mutex, transaction(self._connection) as connection:
            yield connection

    def close(self) -> None:
        """Close it."""
        with self._mutex:
            self._connection.close()
