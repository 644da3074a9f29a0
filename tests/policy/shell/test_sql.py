"""Texts for sqlite3: SQL and dot commands that reach beyond the database."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.code import CodeEffects
from quarterdeck.policy.shell.sql import read_sqlite, read_sqlite_input


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select 'it''s readfile' -- readfile('x')\n from t",
        "select/* edit() */1",
        "insert into t values ('attachment', 2)",
        "PRAGMA table_info(users)",
        "vacuum",
        ".tables",
        ".schema users",
        ".mode csv",
    ],
)
def test_sql_and_commands_that_stay_in_the_database_have_no_effect(text: str) -> None:
    assert read_sqlite(text).none


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("select readfile('/x')", ("/x",), ()),
        ("select \"readfile\"('/x')", ("/x",), ()),
        ("select [ReadFile]('/x')", ("/x",), ()),
        ("select * from 'fsdir'('/')", ("fsdir", "/"), ()),
        ("select writefile('/x', 'y')", (), ("/x", "y")),
        ("attach '/x' as y", ("/x",), ("/x",)),
        ("vacuum into '/x'", (), ("/x",)),
        ("select edit('x','id')", (), ()),
        ("select load_extension('x')", (), ()),
        (".sh id", ("id",), ("id",)),
        (".backup /x", (), ("/x",)),
        (".read /x", ("/x",), ()),
        (".read '|id'", (), ()),
        (".once '|id'", (), ()),
        ('.once "\\174id"', (), ()),
        (".import /x t", ("/x", "t"), ()),
        ("  .shell id", ("id",), ("id",)),
        ("select '", (), ()),
    ],
)
def test_what_reaches_beyond_the_database_must_be_named(
    text: str, reads: tuple[str, ...], writes: tuple[str, ...]
) -> None:
    found = read_sqlite(text)
    assert found.runs
    assert set(reads) <= set(found.reads)
    assert set(writes) <= set(found.writes)


def test_output_to_a_plain_file_is_a_write() -> None:
    assert read_sqlite(".output out.csv") == CodeEffects(writes=("out.csv",))
    assert read_sqlite(".once /outside/x") == CodeEffects(writes=("/outside/x",))


@pytest.mark.parametrize("text", ["select 1;", ".mode csv\nselect 1;\n", ""])
def test_an_input_that_stays_in_the_database_has_no_effect(text: str) -> None:
    assert read_sqlite_input(text).none


@pytest.mark.parametrize(
    "text",
    [
        "select 1;\n.shell id",
        "  .shell id",
        "/* a\n*/\n.shell id",
        "select readfile('x');",
        "select 1;\nvacuum into 'x';",
        ".read x",
    ],
)
def test_every_line_of_an_input_counts(text: str) -> None:
    assert read_sqlite_input(text).runs
