"""Backups: taken while the journal is written, checked before they are trusted, restored whole."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.journal.chain import genesis
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.journal.sqlite.backup import back_up, check, restore
from quarterdeck.protocol.events import Noted, SessionCreated
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored

FILES = {"access.json": b"{}", "cli.secret": b"\x00\x01"}


def note(text: str) -> Noted:
    return Noted(level="info", text=text)


async def fill(path: Path, events: int = 50) -> list[Stored]:
    async with await SqliteJournal.open(path) as journal:
        created = SessionCreated(spec=SessionSpec(directory="/work"), by="ann")
        await journal.append("s", [created, *(note(str(number)) for number in range(events))])
        return await journal.read("s")


async def events_of(path: Path, session: str = "s") -> list[Stored]:
    found: list[Stored] = []
    async with await SqliteJournal.open(path) as journal:
        while page := await journal.read(session, after=found[-1].seq if found else 0):
            found += page
    return found


async def test_a_backup_under_load_restores_to_the_same_journal(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    await fill(path)
    async with await SqliteJournal.open(path) as journal:
        appended = 0
        done = threading.Event()

        async def load(name: str) -> None:
            nonlocal appended
            while not done.is_set():
                await journal.append(name, [note("x" * 2000) for _ in range(20)])
                appended += 20

        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(load, name)
            while appended < 600:  # noqa: ASYNC110 - three tasks make it true
                await anyio.sleep(0.001)
            before = journal.position
            info = await anyio.to_thread.run_sync(back_up, path, target, FILES)
            after = journal.position
            done.set()
        assert before <= info.position <= after
        assert journal.position > before
        original = {
            name: [s for s in await _all(journal, name) if s.position <= info.position]
            for name in ("s", "a", "b", "c")
        }
        epoch = journal.epoch
    elsewhere = tmp_path / "elsewhere" / "journal.db"
    elsewhere.parent.mkdir()
    restored = restore(target, elsewhere)
    assert restored.files == FILES
    assert restored.moved is None
    async with await SqliteJournal.open(elsewhere) as journal:
        assert journal.position == info.position
        assert {name: await _all(journal, name) for name in original} == original
        assert journal.epoch != epoch
        assert genesis(journal.epoch) == genesis(epoch)
        views = {view.session: view.head for view in await journal.summaries()}
        assert views == {name: len(events) for name, events in original.items()}
        await journal.append("s", [note("and on")])


async def _all(journal: SqliteJournal, session: str) -> list[Stored]:
    found: list[Stored] = []
    while page := await journal.read(session, after=found[-1].seq if found else 0):
        found += page
    return found


async def test_the_journal_that_was_there_is_moved_aside_whole(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    first = await fill(path)
    back_up(path, target, {})
    async with await SqliteJournal.open(path) as journal:
        await journal.append("s", [note("later")])
    restored = restore(target, path)
    assert await events_of(path) == first
    assert restored.moved is not None
    assert len(await events_of(restored.moved)) == len(first) + 1
    again = restore(target, path).moved
    assert again is not None
    assert again != restored.moved


async def test_a_backup_tells_what_it_holds_and_only_its_user_can_read_it(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    events = await fill(path)
    info = back_up(path, target, FILES)
    assert info == check(target)
    assert (info.events, info.sessions, info.files) == (len(events), 1, tuple(sorted(FILES)))
    assert target.stat().st_mode & 0o777 == 0o600
    assert [name for name in os.listdir(tmp_path) if name.startswith("backup")] == ["backup"]  # noqa: PTH208 - names


async def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    await fill(path)
    target.write_text("mine")
    with pytest.raises(UsageError, match="there already"):
        back_up(path, target, {})
    assert target.read_text() == "mine"
    with pytest.raises(UsageError, match="no journal"):
        back_up(tmp_path / "none.db", tmp_path / "other", {})


async def test_a_journal_in_use_is_not_replaced(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    await fill(path)
    back_up(path, target, {})
    async with await SqliteJournal.open(path):
        with pytest.raises(JournalError, match="in use"):
            restore(target, path)
    assert len(await events_of(path)) == 51


@pytest.mark.parametrize("part", [0.0, 0.0001, 0.3, 0.9, 0.999])
async def test_a_backup_that_was_cut_short_is_refused(tmp_path: Path, part: float) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    first = await fill(path, 500)
    back_up(path, target, {})
    data = target.read_bytes()
    target.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(JournalError, match=r"damaged|no backup"):
        restore(target, path)
    assert await events_of(path) == first


async def test_a_changed_backup_is_refused(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    await fill(path)
    back_up(path, target, {})
    data = target.read_bytes()
    assert b'"text":"17"' in data
    target.write_bytes(data.replace(b'"text":"17"', b'"text":"71"'))
    with pytest.raises(JournalError, match="not those that it was made with"):
        check(target)


def _other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()


async def test_what_is_no_backup_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    first = await fill(path)
    foreign = tmp_path / "foreign"
    for data in (b"", b"hello", b"PK\x03\x04" + bytes(500)):
        foreign.write_bytes(data)
        with pytest.raises(JournalError, match=r"no backup|damaged"):
            restore(foreign, path)
    foreign.unlink()
    _other_database(foreign)
    with pytest.raises(JournalError, match="no backup"):
        restore(foreign, path)
    other = tmp_path / "other.db"
    await fill(other)
    with pytest.raises(JournalError, match="no backup"):
        restore(other, path)
    with pytest.raises(JournalError, match="cannot be read"):
        restore(tmp_path / "none", path)
    assert await events_of(path) == first


async def test_a_damaged_journal_can_be_replaced(tmp_path: Path) -> None:
    path, target = tmp_path / "journal.db", tmp_path / "backup"
    first = await fill(path)
    back_up(path, target, {})
    path.write_bytes(b"garbage")
    restored = restore(target, path)
    assert await events_of(path) == first
    assert restored.moved is not None
    assert restored.moved.read_bytes() == b"garbage"
