"""The journal's file: owner, lock, schema, and the meaning of SQLite's errors.

Owns the schema and its versions. It opens connections; `writer` and `reader` use them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from quarterdeck.domain.errors import JournalError
from quarterdeck.domain.ids import new_id
from quarterdeck.journal.sqlite.shared_records import SCHEMA as SHARING_SCHEMA
from quarterdeck.journal.sqlite.usage import SCHEMA as USAGE_SCHEMA

APPLICATION = 0x51444A4C
"""«QDJL» in the file's header marks a journal."""

MIGRATIONS = (
    """
    CREATE TABLE journal (epoch TEXT NOT NULL, made INTEGER NOT NULL) STRICT;

    -- A session stays here after it was deleted: its number and its id are not used again.
    CREATE TABLE sessions (
      number INTEGER PRIMARY KEY,
      session TEXT NOT NULL UNIQUE,
      head INTEGER NOT NULL,
      updated INTEGER NOT NULL,
      said INTEGER NOT NULL,
      sent INTEGER NOT NULL,
      archived INTEGER NOT NULL,
      deleted INTEGER NOT NULL,
      folded INTEGER NOT NULL, -- the version of the fold that made the view
      view BLOB NOT NULL       -- all but head, updated, said and sent, which are beside it
    ) STRICT;

    CREATE TABLE events (
      position INTEGER PRIMARY KEY,
      session INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      at INTEGER NOT NULL,
      json BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX events_of_session ON events (session, seq);

    -- Where the questions are: the events that opened and settled them.
    CREATE TABLE asks (
      opened INTEGER PRIMARY KEY,
      session INTEGER NOT NULL,
      ask TEXT NOT NULL,
      settled INTEGER
    ) STRICT;
    CREATE INDEX asks_by_id ON asks (ask);
    CREATE INDEX asks_open ON asks (opened) WHERE settled IS NULL;

    CREATE TABLE audit (position INTEGER PRIMARY KEY, session INTEGER NOT NULL) STRICT;
    CREATE INDEX audit_of_session ON audit (session, position);
    """,
    """
    -- The seals of the audit log. They stay when their session is deleted.
    CREATE TABLE chain (
      position INTEGER PRIMARY KEY,
      session INTEGER NOT NULL,
      digest BLOB NOT NULL,
      seal BLOB NOT NULL
    ) STRICT;
    """,
    USAGE_SCHEMA,
    """
    -- The ids of all prompts; views drop old ones. Filled when views are folded again.
    CREATE TABLE prompts (
      session INTEGER NOT NULL,
      prompt TEXT NOT NULL,
      PRIMARY KEY (session, prompt)
    ) STRICT, WITHOUT ROWID;
    """,
    """
    -- The state of the run of each session that has one, after the event `seq`.
    CREATE TABLE snapshots (
      session INTEGER PRIMARY KEY,
      seq INTEGER NOT NULL,
      data BLOB NOT NULL
    ) STRICT;
    """,
    SHARING_SCHEMA,
)
"""Each entry makes a version of the schema from the one before. Released entries never change."""

BUSY_SECONDS = 5.0
"""How long a connection waits for another one; only a backup program could block it."""


class Lock:
    """Locks a journal for one process: two hubs on one journal would contradict each other.

    `shared`: for processes that all open it as shared, and expect each other's events.

    The lock is on a file beside the journal, since SQLite has its own locks on the journal. It is
    released when the process ends, in whatever way.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._file = _own_file(self._path)
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            self.release()
            raise JournalError(
                f"the journal {path} is in use by another process"
                f"{f' (pid {owner})' if owner.isdigit() else ''}: stop that one, "
                "or choose another data folder",
                code="busy",
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


def prepare(path: Path) -> None:
    """Create the file if it is missing, private to its user, and refuse a file of another kind.

    Call this before SQLite opens the file: closing any descriptor drops SQLite's locks on it. The
    files that SQLite puts beside it have the same permissions.
    """
    file = _own_file(path)
    try:
        head = os.pread(file, 100, 0)
        if head[68:72] == APPLICATION.to_bytes(4, "big"):
            os.fchmod(file, 0o600)
    finally:
        os.close(file)
    if head and not head.startswith(b"SQLite format 3\0"):
        raise JournalError(
            f"{path} is no journal: move it away, or choose another data folder", code="foreign"
        )


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time."""
    mode = "ro" if read_only else "rw"
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def set_up(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS
) -> None:
    """Prepare a connection for writing, and migrate the file to the newest schema.

    Raises `JournalError` for a file of another program, which is left unchanged.
    """
    application = _number(connection, "PRAGMA application_id")
    version = _number(connection, "PRAGMA user_version")
    tables = _number(connection, "SELECT count(*) FROM sqlite_schema")
    if application != APPLICATION and (application or version or tables):
        raise JournalError(
            f"{path} is a database of another program: choose another data folder", code="foreign"
        )
    if version > len(migrations):
        raise JournalError(
            f"the journal {path} was written by a newer Quarterdeck (schema {version}, this one "
            f"knows {len(migrations)}): upgrade this one",
            code="newer",
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")  # deleted data is overwritten
    connection.execute("PRAGMA journal_size_limit = 67108864")  # it shrinks after a burst
    for number, script in enumerate(migrations[version:], version + 1):
        with transaction(connection):
            for statement in _statements(script):
                connection.execute(statement)
            if number == 1:
                connection.execute(
                    "INSERT INTO journal VALUES (?, ?)", (new_id(), int(time.time() * 1000))
                )
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {number}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction around the block."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has already rolled back.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system into a `JournalError` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain_error(error, path) from error
    except (OSError, OverflowError) as error:
        raise JournalError(f"the journal {path}: {error}") from error


def _explain_error(error: sqlite3.Error, path: Path) -> JournalError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_FULL:
            return JournalError(
                f"the disk of the journal {path} is full: make room; nothing was stored",
                code="full",
            )
        case sqlite3.SQLITE_IOERR:
            return JournalError(
                f"the journal {path} cannot be read or written: look at its disk ({error})"
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return JournalError(
                f"the journal {path} is damaged ({error}): stop the hub, and restore a backup or "
                "move the file away to start again",
                code="damaged",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return JournalError(
                f"the journal {path} is held by another program: end that one", code="busy"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return JournalError(
                f"the journal {path} cannot be opened for writing: look at the permissions of "
                f"the file and its folder ({error})"
            )
    return JournalError(f"the journal {path}: {error}")


def _own_file(path: Path) -> int:
    """A descriptor of the file, which must belong to this user. A missing file is created."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise JournalError(
            f"the journal {path} cannot be opened: {error.strerror}; look at its folder"
        ) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise JournalError(f"{path} is no file of this user: choose another", code="foreign")
    except BaseException:
        os.close(file)
        raise
    return file


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """The statements of a script. (`executescript` would commit on its own.)"""
    found = ""
    for part in script.split(";"):
        found += part + ";"
        if sqlite3.complete_statement(found) and part.strip():
            yield found
            found = ""
