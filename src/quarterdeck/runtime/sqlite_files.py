"""Small SQLite files beside the journal: what a front must not forget.

Owns how such a file is opened: private to its user, in WAL mode, and moved aside if it is damaged.
With several hubs a `Mirror` has its rows for all of them: each look begins with what the others
changed, and a change is theirs, too, before it is committed here. It knows no table. Blocking.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TypeVar

from quarterdeck.domain.errors import Conflict
from quarterdeck.runtime.shared_tables import Mirror, RowConflict

log = logging.getLogger(__name__)

BUSY_SECONDS = 5.0

TRIES = 20
"""How often a change is tried again that another hub was faster with."""

_Self = TypeVar("_Self")
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

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


def again(
    change: Callable[Concatenate[_Self, _Given], _Answer],
) -> Callable[Concatenate[_Self, _Given], _Answer]:
    """Have a method that changes a `SqliteFile` begin again if another hub was faster."""

    @wraps(change)
    def retry(self: _Self, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        for _ in range(TRIES):
            try:
                return change(self, *args, **kwargs)
            except RowConflict:
                continue
        raise Conflict("changed_meanwhile", "other hubs change the same all the time: try again")

    return retry


class SqliteFile:
    """A file that several threads use, one at a time.

    Methods that use `changing` are marked with `again`.
    """

    def __init__(
        self, path: Path, schema: str, *, synchronous: Synchronous, mirror: Mirror | None = None
    ) -> None:
        """Open it. `mirror` has its rows for several hubs; it is asked in the threads of users."""
        self._mutex = threading.Lock()
        self._mirror = mirror
        self._connection = open_sqlite(path, schema, synchronous=synchronous)
        if mirror is not None:
            mirror.note_open(self._connection)

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """The file, for reading. Take all rows inside the block."""
        with self._mutex:
            if self._mirror is not None:
                self._mirror.refresh(self._connection)
            yield self._connection

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """The file, in a transaction."""
        with self._mutex:
            if self._mirror is not None:
                self._mirror.refresh(self._connection)
            with transaction(self._connection) as connection:
                yield connection
                if self._mirror is not None:
                    self._mirror.publish(connection)

    def confirm(self) -> None:
        """Raises `StaleLease` if what is done with it is another hub's work by now."""
        if self._mirror is not None:
            self._mirror.confirm()

    def look(self) -> None:
        """See what other hubs have changed."""
        with self.read_transaction():
            pass

    def close(self) -> None:
        """Close it."""
        with self._mutex:
            self._connection.close()
