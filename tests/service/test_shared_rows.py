"""Small SQLite files of several hubs: what one stores, the others have."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec
import pytest

from quarterdeck.domain.errors import Conflict, JournalError, StaleFence
from quarterdeck.fronts.http.people import FILE as PEOPLE
from quarterdeck.fronts.http.people import PeopleStore, renumber_united
from quarterdeck.fronts.http.roles import Person
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.ownership import hold_lease
from quarterdeck.protocol.people import NewSavedPrompt, PreferenceChange, PreferenceKind
from quarterdeck.protocol.roles import Role
from quarterdeck.runtime.shared_tables import Row, RowConflict
from quarterdeck.runtime.sqlite_files import SqliteFile, again
from quarterdeck.service.shared_rows import PART_BYTES, LeasedRows, SharedRows
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, body BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS counter (version INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS pairs (
  one TEXT, two INTEGER, value REAL, PRIMARY KEY (one, two)
) STRICT, WITHOUT ROWID;
"""

_Answer = TypeVar("_Answer")


class Store:
    """A file as the fronts have them."""

    def __init__(self, path: Path, mirror: SharedRows | None = None) -> None:
        self.file = SqliteFile(path, SCHEMA, synchronous="NORMAL", mirror=mirror)

    @again
    def do(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        with self.file.write_transaction() as db:
            for query, values in statements:
                db.execute(query, values)

    @again
    def count(self) -> int:
        with self.file.write_transaction() as db:
            row = db.execute("SELECT version FROM counter").fetchone()
            version = 1 if row is None else row[0] + 1
            db.execute("DELETE FROM counter")
            db.execute("INSERT INTO counter VALUES (?)", (version,))
            return int(version)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with self.file.read_transaction() as db:
            return db.execute(query).fetchall()


async def thread(work: Callable[..., _Answer], *args: object) -> _Answer:
    return await anyio.to_thread.run_sync(partial(work, *args))


def note(id_: str, body: bytes = b"") -> tuple[str, tuple[object, ...]]:
    return "INSERT INTO notes (id, body) VALUES (?, ?)", (id_, body)


def two(tmp_path: Path, journal: MemoryJournal, duty: str = "") -> tuple[Store, Store]:
    for name in "ab":
        (tmp_path / name).mkdir(exist_ok=True)
    a, b = (
        Store(tmp_path / name / "x.db", SharedRows(each, tmp_path / name / "x.db", duty=duty))
        for name, each in (("a", journal), ("b", journal.beside()))
    )
    return a, b


ALL = "SELECT id, body FROM notes ORDER BY number"


async def test_what_one_hub_stores_the_other_reads_at_once(tmp_path: Path) -> None:
    a, b = two(tmp_path, MemoryJournal())
    await thread(a.do, note("1", b"\x00\xff"), note("2"))
    pair = ("INSERT INTO pairs VALUES (?, ?, ?)", ("ü\"'\n%", 7, 0.5))
    await thread(a.do, pair)
    assert await thread(b.rows, ALL) == [("1", b"\x00\xff"), ("2", b"")]
    assert await thread(b.rows, "SELECT * FROM pairs") == [("ü\"'\n%", 7, 0.5)]
    await thread(b.do, ("UPDATE notes SET body = ? WHERE id = '1'", (None,)))
    await thread(b.do, ("DELETE FROM notes WHERE id = '2'", ()), ("DELETE FROM pairs", ()))
    assert await thread(a.rows, ALL) == [("1", None)]
    assert await thread(a.rows, "SELECT * FROM pairs") == []
    # A row that replaces another one by a second key removes it everywhere.
    await thread(a.do, ("INSERT OR REPLACE INTO notes (id, body) VALUES ('1', x'00')", ()))
    assert await thread(b.rows, "SELECT number, id FROM notes") == [(3, "1")]
    # Numbers are given once, also after the row with the highest one has gone.
    await thread(a.do, ("DELETE FROM notes", ()))
    await thread(b.do, note("4"))
    assert await thread(a.rows, "SELECT number, id FROM notes") == [(4, "4")]


async def test_of_changes_at_the_same_time_none_is_lost(tmp_path: Path) -> None:
    a, b = two(tmp_path, MemoryJournal())
    found: list[int] = []

    async def count(store: Store, name: str) -> None:
        for number in range(10):
            found.append(await thread(store.count))
            await thread(store.do, note(f"{name}{number}"))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count, a, "a")
            tasks.start_soon(count, b, "b")
    assert sorted(found) == list(range(1, 21))
    assert await thread(a.rows, ALL) == await thread(b.rows, ALL)
    assert len(await thread(a.rows, ALL)) == 20


async def test_a_hub_that_lost_the_lease_stores_nothing(tmp_path: Path) -> None:
    journal = MemoryJournal()
    a, b = two(tmp_path, journal, duty="work")
    lease = await journal.take_lease("work", "a", 60)
    other = await journal.take_lease("other", "a", 60)
    assert lease is not None
    assert other is not None
    with hold_lease(lease):
        await thread(a.do, note("1"))
        await journal.release_lease(lease)  # it stood still, and another hub went on
        taken = await journal.take_lease("work", "b", 60)
        assert taken is not None
        with hold_lease(taken):
            await thread(b.do, note("2"))
        with pytest.raises(StaleFence):
            await thread(a.do, note("3"))
        assert await thread(a.rows, ALL) == [("1", b""), ("2", b"")]
    # What people do at that hub is stored: it is not under the lease.
    await thread(a.do, note("4"))
    with hold_lease(other):
        await thread(a.do, note("5"))
    assert len(await thread(b.rows, ALL)) == 4


async def test_a_file_of_a_hub_that_was_alone_is_taken_over_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        alone = Store(tmp_path / name / "x.db")
        alone.do(note(f"of {name}", name.encode()), note("both", name.encode()))
        alone.do(("INSERT INTO pairs VALUES ('p', ?, 1)", (ord(name),)))
        alone.count()
        alone.file.close()
    journal = MemoryJournal()
    a, b = two(tmp_path, journal)
    assert len(await thread(a.rows, ALL)) == 2
    assert await thread(b.rows, ALL) == [("of a", b"a"), ("both", b"a"), ("of b", b"b")]
    assert await thread(a.rows, ALL) == await thread(b.rows, ALL)
    assert await thread(a.rows, "SELECT two FROM pairs") == [(97,), (98,)]
    assert await thread(a.rows, "SELECT * FROM counter") == [(1,)]
    assert not (tmp_path / "a" / "x.db.alone").exists()
    kept = sqlite3.connect(tmp_path / "b" / "x.db.alone")
    assert kept.execute(ALL).fetchall() == [("of b", b"b"), ("both", b"b")]
    kept.close()
    assert (tmp_path / "b" / "x.db.alone").stat().st_mode & 0o777 == 0o600
    assert "kept as x.db.alone" in caplog.text
    # It is one of them now: what others removed stays so, also after a new start.
    await thread(a.do, ("DELETE FROM notes WHERE id = 'of b'", ()))
    b.file.close()
    again_, _ = two(tmp_path, journal)
    assert again_ is not None
    _, b = two(tmp_path, journal)
    assert await thread(b.rows, ALL) == [("of a", b"a"), ("both", b"a")]


async def test_removed_rows_are_forgotten_and_stay_removed(tmp_path: Path) -> None:
    journal = MemoryJournal()
    a, b = two(tmp_path, journal)
    await thread(a.do, note("1"), note("2"))
    assert len(await thread(b.rows, ALL)) == 2
    await thread(a.do, ("DELETE FROM notes WHERE id = '1'", ()))
    version = await journal.shared_version("rows/x.db")
    await journal.forget_removed("rows/x.db", before=version)
    await thread(a.do, note("3"))
    assert await thread(b.rows, ALL) == [("2", b""), ("3", b"")]


async def test_without_the_store_a_file_is_read_and_not_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = MemoryJournal()
    a, _ = two(tmp_path, journal)
    await thread(a.do, note("1"))
    await journal.close()
    assert await thread(a.rows, ALL) == [("1", b"")]
    with pytest.raises(JournalError):
        await thread(a.do, note("2"))
    assert await thread(a.rows, ALL) == [("1", b"")]
    assert caplog.text.count("is not known") == 1


async def test_rows_that_do_not_fit_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = MemoryJournal()
    a, b = two(tmp_path, journal)
    await thread(a.do, note("1"))
    space = "rows/x.db"
    bad: dict[str, bytes | None] = {
        "garbage": b"\xc1\xff",
        "unknown": _row("sqlite_schema", (1,), {"sql": "x"}),
        "hostile": _row('notes"; DROP TABLE notes; --', (1,), {"id": "x"}),
        "sequence": _row("sqlite_sequence", ("nothing",), {"seq": 9}),
        "null": _row("notes", (8,), {"number": 8, "id": None}),
        "type": _row("notes", (9,), {"number": "nine", "id": "9"}),
        "key": _row("notes", (), {"id": "10"}),
    }
    await journal.share_all(space, bad)
    good = _row("notes", (11,), {"number": 11, "id": "11", "new": "of a newer version"})
    await journal.share(space, "good", good)
    assert await thread(b.rows, ALL) == [("1", b""), ("11", None)]
    assert caplog.text.count("ERROR") + caplog.text.count("WARNING") >= 5
    await thread(b.do, note("2"))
    assert [row[0] for row in await thread(a.rows, ALL)] == ["1", "11", "2"]


def _row(name: str, key: tuple[object, ...], cells: dict[str, object]) -> bytes:
    return msgspec.msgpack.encode({"name": name, "key": key, "cells": cells})


async def test_a_change_that_others_are_always_faster_with_is_refused() -> None:
    class Busy:
        @again
        def change(self) -> None:
            raise RowConflict

    with pytest.raises(Conflict):
        Busy().change()


async def test_preferences_and_prompts_are_the_same_at_all_hubs(tmp_path: Path) -> None:
    ada = Person(name="ada", role=Role.OWNER, grant="g")
    journal = MemoryJournal()
    for name in "ab":
        (tmp_path / name).mkdir()
    # Before they were two, each hub had something.
    early = PeopleStore(tmp_path / "b")
    early.change(ada, [_draft("early", "typed at b")])
    early.save(ada, "prompt", "p2", NewSavedPrompt(name="two", text="of b"))
    early.close()
    mirrors = [
        SharedRows(each, tmp_path / name / PEOPLE, joined=renumber_united)
        for name, each in (("a", journal), ("b", journal.beside()))
    ]
    a, b = (
        PeopleStore(tmp_path / name, mirror=mirror)
        for name, mirror in zip("ab", mirrors, strict=True)
    )
    told: list[tuple[str, int]] = []
    a.listen(lambda person, version: told.append((person.name, version)))
    mirrors[0].changed = a.note_remote_change
    await thread(a.save, ada, "prompt", "p", NewSavedPrompt(name="one", text="of a", shared=True))
    page = await thread(a.change, ada, [_draft("s", "half a sen")])
    got = await thread(b.preferences, ada)
    assert {each.key: each.value for each in got.preferences} == {
        "s": "half a sen",
        "early": "typed at b",
    }
    assert {each.id for each in (await thread(b.library, ada)).prompts} == {"p", "p2"}
    # A device that knew the first version learns of everything.
    news = await thread(a.preferences, ada, page.version)
    assert {each.key for each in news.preferences} == {"s", "early"}
    # The same draft at both hubs: no text is lost.
    base = {each.key: each.version for each in got.preferences}["s"]
    async with anyio.create_task_group() as tasks:
        for store, text in ((a, "one"), (b, "two")):
            change = _draft("s", text, base)
            tasks.start_soon(thread, store.change, ada, [change])
    await thread(a.look)
    (draft,) = [each for each in (await thread(b.preferences, ada)).preferences if each.key == "s"]
    assert isinstance(draft.value, str)
    assert {"one", "two"} <= set(draft.value.split())
    await anyio.wait_all_tasks_blocked()
    assert {name for name, _ in told} == {"ada"}
    a.close()
    b.close()


def _draft(key: str, text: str, base: int = 0) -> PreferenceChange:
    return PreferenceChange(kind=PreferenceKind.DRAFT, key=key, value=text, at=1, base=base)


async def test_other_hubs_changes_are_told_while_nobody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.service.shared_rows.LOOK_SECONDS", 0.01)
    journal = MemoryJournal()
    (tmp_path / "c").mkdir()
    mirror = SharedRows(journal.beside(), tmp_path / "c" / "x.db")
    c = Store(tmp_path / "c" / "x.db", mirror)
    a, _ = two(tmp_path, journal)
    seen: list[Row] = []
    mirror.changed = seen.extend
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mirror.run, c.file.look)
        tasks.start_soon(mirror.keep_small)
        await thread(c.file.look)
        await thread(a.do, note("1"))
        with anyio.fail_after(SECONDS):
            while not seen:  # noqa: ASYNC110 - a thread makes it true
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert [row.name for row in seen] == ["notes"]


async def test_the_file_of_a_front_moves_with_its_lease(tmp_path: Path) -> None:
    journal = MemoryJournal()
    for name in "ab":
        (tmp_path / name).mkdir()
    files = {name: tmp_path / name / "x.db" for name in "ab"}
    own = {name: Store(path) for name, path in files.items()}
    own["a"].do(note("early a"))
    own["b"].do(note("early b"), ("INSERT INTO counter VALUES (7)", ()))
    with own["a"].file.read_transaction() as a, own["b"].file.read_transaction() as b:
        kept = {name: LeasedRows(journal, path, "bot") for name, path in files.items()}
        with pytest.raises(JournalError):
            await kept["a"].keep()
        lease = await journal.take_lease("bot", "a", 60)
        assert lease is not None
        with hold_lease(lease):
            await kept["a"].join(a)
            a.execute(*note("1", bytes(PART_BYTES)))
            a.execute(*note("2", bytes(PART_BYTES)))
            await kept["a"].keep()
            await kept["a"].keep()
            a.execute(*note("not told"))
            await journal.release_lease(lease)
            taken = await journal.take_lease("bot", "b", 60)
            assert taken is not None
            with pytest.raises(StaleFence):
                await kept["a"].keep()
        ids = "SELECT id FROM notes ORDER BY number"
        with hold_lease(taken):
            await kept["b"].join(b)
            found = [row[0] for row in b.execute(ids)]
            assert found == ["early a", "1", "2", "early b"]
            assert (tmp_path / "b" / "x.db.alone").exists()
            b.execute("DELETE FROM notes WHERE id = '1'")
            await kept["b"].keep()
            await journal.release_lease(taken)
        back = await journal.take_lease("bot", "a", 60)
        assert back is not None
        with hold_lease(back):  # what it had stored for itself alone is forgotten
            await kept["a"].join(a)
        assert [row[0] for row in a.execute(ids)] == ["early a", "2", "early b"]
        assert a.execute("SELECT * FROM counter").fetchall() == [(7,)]
