"""Opens the journal that an address names: a file, or a database.

Owns the choice of the engine, and which is loaded: PostgreSQL's only where one is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from quarterdeck.journal.journal_threads import ThreadedJournal

SCHEMES = ("postgresql://", "postgres://")


def is_database(target: str | Path) -> bool:
    """Whether an address names a database, and not a file."""
    return isinstance(target, str) and target.startswith(SCHEMES)


async def open_journal(
    target: str | Path,
    *,
    password: str | None = None,
    clock: Callable[[], float] = time.time,
) -> ThreadedJournal:
    """Open a journal: `postgresql://…`, or the path of a file. What is missing is made.

    `password`: that of the database, if it is not in the address. Raises `JournalError`, and
    `UsageError` for an invalid address or a missing extra.
    """
    if isinstance(target, str) and is_database(target):
        from quarterdeck.journal.postgres import PostgresJournal

        return await PostgresJournal.open(target, password=password, clock=clock)
    from quarterdeck.journal.sqlite import SqliteJournal

    return await SqliteJournal.open(target, clock=clock)
