"""`quarterdeck journal copy`: a whole journal from a file to a database, or back.

It works on both journals themselves: no hub may use them. The password of a database comes from its
address, or from PostgreSQL's own variables and files.
"""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json
from quarterdeck.cli.terminal.text import count
from quarterdeck.domain.errors import UsageError
from quarterdeck.journal.engines import is_database
from quarterdeck.journal.transfer import Opened, copy


def run_copy(source: str, target: str, *, json_output: bool) -> int:
    """Copy a journal, and print what was copied."""
    if source == target:
        raise UsageError("--from and --to name the same journal")
    copied = copy(_open_journal(source), _open_journal(target, create=True))
    if json_output:
        print_json([copied])
        return Exit.SUCCESS
    text = (
        f"{count(copied.events, 'event')} of {count(copied.sessions, 'session')} copied, compared "
        f"and found the same; the head of the audit log is {copied.head}"
    )
    consoles.stderr().print(Text(text), soft_wrap=True)
    return Exit.SUCCESS


def _open_journal(place: str, *, create: bool = False) -> Opened:
    if is_database(place):
        from quarterdeck.journal.postgres.tables import postgres_tables

        return lambda: postgres_tables(place, unused=True)
    if "://" in place:
        raise UsageError("a journal is a file, or postgresql://USER@HOST/DATABASE")
    from quarterdeck.journal.sqlite.tables import sqlite_tables

    path = Path(place).expanduser().absolute()
    return lambda: sqlite_tables(path, create=create)
