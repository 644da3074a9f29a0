"""Each event of a session is given by a row of the table of transitions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import quarterdeck
from quarterdeck.hub.decisions.table import TABLE
from quarterdeck.protocol import events as ev

HUB = Path(quarterdeck.__file__).parent / "hub"
WITHOUT_A_ROW = {ev.SessionDeleted}
"""The journal itself writes that a session was deleted."""


def calls(file: Path, method: str) -> Iterator[str]:
    """The receivers of the calls of a method."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr=name, value=whose)) if name == method:
                yield ast.unparse(whose)
            case _:
                pass


def modules() -> list[Path]:
    return sorted(HUB.rglob("*.py"))


def test_each_event_is_in_a_row() -> None:
    given = {event for row in TABLE.values() for event in row.events}
    assert set(get_args(ev.AnyEvent)) - given == WITHOUT_A_ROW


def test_only_the_shell_journals_events_of_a_session() -> None:
    """Nothing but a session appends to its journal, and nothing but the shell has it do so.

    The one other append is that of the shell, for a session whose process another hub has.
    """
    journalling = {
        file.relative_to(HUB).as_posix()
        for file in modules()
        for whose in calls(file, "append")
        if whose.endswith("journal")
    }
    assert journalling == {"session.py", "shell.py"}
    committing = {
        file.name for file in modules() for whose in calls(file, "append") if whose == "session"
    }
    assert committing == {"shell.py"}


def test_only_a_decision_puts_events_into_a_session() -> None:
    noting = {
        file.name
        for file in modules()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "session.note"
    }
    assert noting == {"shell.py"}
