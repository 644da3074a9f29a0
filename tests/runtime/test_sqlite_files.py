"""Small SQLite files: private, whole or not at all, and moved aside when they are damaged."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest

from quarterdeck.runtime.sqlite_files import SqliteFile

SCHEMA = "CREATE TABLE IF NOT EXISTS words (word TEXT NOT NULL UNIQUE) STRICT;"


def words(file: SqliteFile) -> list[str]:
    with file.read_transaction() as db:
        return [word for (word,) in db.execute("SELECT word FROM words ORDER BY word")]


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "words.db", SCHEMA, synchronous="FULL")
    with file.write_transaction() as db:
        db.execute("INSERT INTO words VALUES ('one')")

    def add_two() -> None:
        with file.write_transaction() as db:
            db.execute("INSERT INTO words VALUES ('two')")
            db.execute("INSERT INTO words VALUES ('one')")

    with pytest.raises(sqlite3.IntegrityError):
        add_two()
    assert words(file) == ["one"]
    file.close()
    again = SqliteFile(tmp_path / "words.db", SCHEMA, synchronous="NORMAL")
    assert words(again) == ["one"]
    again.close()


def test_a_file_is_private_to_its_user(tmp_path: Path) -> None:
    SqliteFile(tmp_path / "words.db", SCHEMA, synchronous="NORMAL").close()
    assert (tmp_path / "words.db").stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_is_moved_aside_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = b"no database at all" * 100
    (tmp_path / "words.db").write_bytes(damaged)
    with caplog.at_level(logging.ERROR):
        file = SqliteFile(tmp_path / "words.db", SCHEMA, synchronous="NORMAL")
    assert words(file) == []
    file.close()
    assert (tmp_path / "words.damaged").read_bytes() == damaged
    assert "moved aside as words.damaged" in caplog.text


def test_a_file_that_cannot_be_opened_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "words.db").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        SqliteFile(tmp_path / "words.db", SCHEMA, synchronous="NORMAL")
    assert (tmp_path / "words.db").is_dir()
