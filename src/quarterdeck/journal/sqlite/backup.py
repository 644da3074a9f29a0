"""Backups of the journal: one file, taken while a hub works, checked before it is trusted.

Owns the form of a backup: a copy of the journal's file, made at one moment, with a table that says
what must be in it and the few other files that a hub needs. Everything here blocks.

A backup is a snapshot: SQLite copies what was committed at its start. Appends during the copy do
not wait and are not in it. A restored journal has a new epoch (the original one, a dot, and an id),
because the events after the backup are lost and their numbers will be used again; a follower of the
old journal must start again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.journal.sqlite.file import (
    APPLICATION,
    MIGRATIONS,
    Lock,
    connect,
    explained_errors,
    transaction,
)

FORMAT = 1
_MAGIC = b"SQLite format 3\0"
_TABLES = """
CREATE TABLE backup (
  format INTEGER, made INTEGER, epoch TEXT, position INTEGER, events INTEGER, digest TEXT
) STRICT;
CREATE TABLE backup_files (name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;
"""


class BackupInfo(Value, omit_defaults=False):
    """The content of a backup."""

    made: int
    epoch: str
    """The epoch of the source journal."""
    position: int
    events: int
    sessions: int
    bytes: int
    files: tuple[str, ...]


class Restored(Value):
    """The result of a restore."""

    info: BackupInfo
    files: dict[str, bytes]
    """The other files of the backup; the caller puts them in place."""
    moved: Path | None
    """Where the previous journal was moved to."""


def back_up(journal: Path, target: Path, files: Mapping[str, bytes]) -> BackupInfo:
    """Copy the journal, which may be in use, and `files` into the new file `target`.

    Raises `UsageError` if the target exists, `JournalError` if the copy fails.
    """
    if not journal.is_file():
        raise UsageError(f"there is no journal at {journal}")
    if target.exists():
        raise UsageError(f"{target} is there already: choose another name, or move it away")
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        _make_private(part)
        with explained_errors(journal), closing(connect(journal, read_only=True)) as source:
            if source.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise JournalError(f"{journal} is no journal", code="foreign")
            with _write_backup(part), closing(sqlite3.connect(part, isolation_level=None)) as copy:
                # All in one step: of a journal that changes between two steps, SQLite would begin
                # the copy again and again.
                source.backup(copy, pages=-1)
                _complete(copy, files)
        _sync(part)
        part.rename(target)
        _sync(target.parent)
    finally:
        part.unlink(missing_ok=True)
    return check(target)


def check(backup: Path) -> BackupInfo:
    """Read a backup and return its content. Raises `JournalError` for an invalid one:

    another kind of file, truncated, changed, or of a newer version.
    """
    _check_whole(backup)
    with _read_backup(backup), closing(connect(backup, read_only=True)) as connection:
        ask = connection.execute
        ours = ask("PRAGMA application_id").fetchone()[0] == APPLICATION
        if not ours or not ask("SELECT 1 FROM sqlite_schema WHERE name = 'backup'").fetchone():
            raise _foreign(backup)
        version = int(ask("PRAGMA user_version").fetchone()[0])
        format_, made, epoch, position, events, digest = ask("SELECT * FROM backup").fetchone()
        if version > len(MIGRATIONS) or format_ > FORMAT:
            raise JournalError(
                f"{backup} was made by a newer Quarterdeck: upgrade this one", code="newer"
            )
        if ask("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _damage_error(backup, "its pages do not fit together")
        if (events, digest) != _digest(connection):
            raise _damage_error(backup, "its events are not those that it was made with")
        (sessions,) = ask("SELECT count(*) FROM sessions WHERE NOT deleted").fetchone()
        names = ask("SELECT name FROM backup_files ORDER BY name").fetchall()
        return BackupInfo(
            made=made,
            epoch=epoch,
            position=position,
            events=events,
            sessions=sessions,
            bytes=backup.stat().st_size,
            files=tuple(name for (name,) in names),
        )


def restore(backup: Path, journal: Path) -> Restored:
    """Restore the journal of a backup. An existing journal is moved aside, not deleted.

    Raises `JournalError` for an invalid backup, and while a process uses the journal.
    """
    info = check(backup)
    lock = Lock(journal)
    fresh = journal.with_name(f"{journal.name}.restored")
    try:
        _make_private(fresh)
        with _read_backup(backup), closing(connect(backup, read_only=True)) as source:
            files = dict(source.execute("SELECT name, data FROM backup_files").fetchall())
            with (
                _write_backup(fresh),
                closing(sqlite3.connect(fresh, isolation_level=None)) as copy,
            ):
                source.backup(copy, pages=-1)
                with transaction(copy):
                    copy.execute("DROP TABLE backup")
                    copy.execute("DROP TABLE backup_files")
                    born = info.epoch.partition(".")[0]
                    copy.execute("UPDATE journal SET epoch = ?", (f"{born}.{new_id()}",))
        _sync(fresh)
        moved = _move_aside(journal)
        fresh.rename(journal)
        _sync(journal.parent)
        return Restored(info=info, files=files, moved=moved)
    finally:
        fresh.unlink(missing_ok=True)
        lock.release()


def _complete(copy: sqlite3.Connection, files: Mapping[str, bytes]) -> None:
    """Turn a copy of a journal into a backup: one file with a description of its content."""
    copy.execute("PRAGMA journal_mode = DELETE")
    (epoch,) = copy.execute("SELECT epoch FROM journal").fetchone()
    (position,) = copy.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
    events, digest = _digest(copy)
    for statement in _TABLES.split(";")[:-1]:
        copy.execute(statement)
    with transaction(copy):
        copy.execute(
            "INSERT INTO backup VALUES (?, ?, ?, ?, ?, ?)",
            (FORMAT, int(time.time() * 1000), epoch, position, events, digest),
        )
        copy.executemany("INSERT INTO backup_files VALUES (?, ?)", files.items())


def _digest(connection: sqlite3.Connection) -> tuple[int, str]:
    """The number of events, and a checksum of them."""
    found = sha256()
    events = 0
    rows = connection.execute("SELECT position, session, seq, at, json FROM events ORDER BY 1")
    for position, session, seq, at, json in rows:
        found.update(struct.pack(">5q", position, session, seq, at, len(json)))
        found.update(json)
        events += 1
    return events, found.hexdigest()


def _check_whole(backup: Path) -> None:
    """Refuse another kind of file, or a truncated one, before SQLite opens it."""
    try:
        with backup.open("rb") as stream:
            head = stream.read(100)
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise JournalError(f"{backup} cannot be read: {error.strerror}") from error
    if not head.startswith(_MAGIC[: len(head)]) or not head:
        raise _foreign(backup)
    if len(head) == 100:
        page = int.from_bytes(head[16:18], "big")
        page = 65536 if page == 1 else page
        pages = int.from_bytes(head[28:32], "big")
        if size == page * pages:
            return
    raise _damage_error(backup, "it is not as long as it should be")


def _move_aside(journal: Path) -> Path | None:
    if not journal.exists():
        return None
    # The write-ahead log belongs to the file. A damaged file keeps its log.
    with contextlib.suppress(sqlite3.Error), closing(connect(journal)) as old:
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    moved = journal.with_name(f"{journal.name}.before-{stamp}")
    number = 1
    while moved.exists():
        number += 1
        moved = journal.with_name(f"{journal.name}.before-{stamp}-{number}")
    for end in ("-wal", "-shm", ""):
        beside = journal.with_name(journal.name + end)
        if beside.exists():
            beside.rename(moved.with_name(moved.name + end))
    return moved


def _foreign(backup: Path) -> JournalError:
    return JournalError(f"{backup} is no backup of Quarterdeck", code="foreign")


def _damage_error(backup: Path, how: str) -> JournalError:
    return JournalError(f"the backup {backup} is damaged: {how}; nothing was done", code="damaged")


@contextlib.contextmanager
def _read_backup(backup: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, TypeError, ValueError, struct.error) as error:
        raise _damage_error(backup, str(error)) from error


@contextlib.contextmanager
def _write_backup(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise JournalError(f"{path} cannot be written: {error}") from error


def _make_private(path: Path) -> None:
    path.unlink(missing_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {error.strerror}") from error


def _sync(path: Path) -> None:
    """Sync a file, or a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
