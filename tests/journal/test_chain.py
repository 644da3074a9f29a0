"""The audit log's chain in a file that somebody has edited: every change shows."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from quarterdeck.journal import SqliteJournal
from quarterdeck.journal.chain import Check, parse_head
from quarterdeck.journal.event_codec import encode
from quarterdeck.journal.sqlite.file import MIGRATIONS, connect, set_up
from quarterdeck.protocol.audit import Checked, Head
from quarterdeck.protocol.events import Decided, Noted


def decided(title: str) -> Decided:
    return Decided(tool="Bash", title=title, verdict="allow", by="policy")


async def check(path: Path, expected: Head | None = None) -> Checked:
    async with await SqliteJournal.open(path) as journal:
        walk = Check(journal.epoch, expected)
        while page := await journal.links(after=walk.after):
            walk.add(page)
        return walk.result()


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A journal with five entries, at the positions 1, 2, 4, 5 and 6."""
    path = tmp_path / "journal.db"
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [decided("1"), decided("2"), Noted(level="info", text="x")])
        await journal.append("b", [decided("3"), decided("4")])
        await journal.append("a", [decided("5")])
    return path


@pytest.mark.parametrize(
    ("statements", "position"),
    [
        (["UPDATE events SET json = CAST(replace(json, '2', '9') AS BLOB) WHERE position = 2"], 2),
        (["UPDATE events SET at = at + 1 WHERE position = 4"], 4),
        (["UPDATE events SET session = 2, seq = 9 WHERE position = 1"], 1),
        (["DELETE FROM events WHERE position = 4", "DELETE FROM audit WHERE position = 4"], 4),
        (["DELETE FROM audit WHERE position = 4"], 4),
        (
            [
                "DELETE FROM events WHERE position = 2",
                "DELETE FROM audit WHERE position = 2",
                "DELETE FROM chain WHERE position = 2",
            ],
            4,
        ),
        (["INSERT INTO audit VALUES (3, 1)"], 3),
        (["UPDATE chain SET digest = x'00' WHERE position = 5"], 5),
    ],
)
async def test_what_was_changed_shows_at_its_place(
    path: Path, statements: list[str], position: int
) -> None:
    assert (await check(path)).good
    edit(path, *statements)
    flaws = (await check(path)).flaws
    assert flaws[0].position == position
    assert len(flaws) == 1


async def test_entries_that_were_cut_off_show_to_whoever_kept_the_head(path: Path) -> None:
    head = (await check(path)).head
    assert parse_head(str(head)) == head
    for table in ("events", "audit", "chain"):
        edit(path, f"DELETE FROM {table} WHERE position > 4")
    assert (await check(path)).good
    assert not (await check(path, head)).good


async def test_a_journal_of_before_there_was_a_chain_is_chained_when_it_is_opened(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    path.touch(mode=0o600)
    connection = connect(path)
    set_up(connection, path, MIGRATIONS[:1])
    connection.execute(
        "INSERT INTO sessions VALUES (1, 'a', 2, 7, 0, 0, 0, 0, 0, CAST('{}' AS BLOB))"
    )
    for number in (1, 2):
        json = encode([decided(str(number))]).lines[0]
        connection.execute("INSERT INTO events VALUES (?, 1, ?, 7, ?)", (number, number, json))
        connection.execute("INSERT INTO audit VALUES (?, 1)", (number,))
    connection.close()
    result = await check(path)
    assert (result.good, result.entries) == (True, 2)
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [decided("3")])
    assert (await check(path, result.head)).entries == 3


@pytest.mark.parametrize("text", ["", "1", "x:" + "0" * 64, "1:" + "0" * 63, "1:" + "g" * 64])
def test_what_is_no_head_is_none(text: str) -> None:
    assert parse_head(text) is None
