"""`quarterdeck backup` and `restore`: the hub's data folder as one file.

They work on the data folder itself. A backup can be made while the hub runs; for a restore the hub
and all its agents must be stopped, because events since the backup would not fit.

A backup contains the journal, access (`access.json`, `cli.secret`), policies and grants, the
secret of webhooks, the schedules that people made, and what is kept for people: drafts, pins,
read marks, saved prompts and templates. It does not contain what is created again
when it is missing (the search index, the tokens of this machine's commands and runner), nor the
configuration, which is the user's file.

A journal in PostgreSQL is copied into the backup as it is at one moment, and restored only into a
database without a journal.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.files import size
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.text import count, moment
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.fronts.http.people import FILE as PEOPLE
from quarterdeck.fronts.http.people import copy_of
from quarterdeck.hub.permissions.policies import NAMED as POLICIES
from quarterdeck.journal.sqlite.backup import BackupInfo, Restored, back_up, check, restore
from quarterdeck.journal.sqlite.tables import sqlite_tables
from quarterdeck.journal.transfer import Opened, copy
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.runtime.files import replace_file
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.journal_place import database_password
from quarterdeck.service.local_hub import (
    JOURNAL,
    RUNNER,
    SEARCH,
    agents_in,
    hub_lock,
)

KEPT = re.compile(
    r"access\.json|cli\.secret|cli-tokens\.json|webhook\.secret|grants\.json|policy\.toml"
    r"|schedules\.json|people\.db"
    r"|policies/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\.toml"
)
"""The files besides the journal. No other name in a backup is ever written."""


def run_backup(file: Path) -> int:
    """Write a backup, and print its content."""
    home = data_home(create=False)
    database = _database()
    if database is None and not (home / JOURNAL).exists():
        raise UsageError(f"there is nothing to back up: no hub has run from {home} yet")
    target = file.expanduser().absolute()
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is not a folder")
    if database is None:
        info = back_up(home / JOURNAL, target, _kept_files(home))
    else:
        with TemporaryDirectory(dir=target.parent, prefix=".backup-") as folder:
            journal = Path(folder) / JOURNAL
            copy(database, partial(sqlite_tables, journal, create=True))
            info = back_up(journal, target, _kept_files(home))
    consoles.stderr().print(Text(f"{target}: {_summary(info)}"), soft_wrap=True)
    return Exit.SUCCESS


def run_restore(file: Path, *, check_only: bool) -> int:
    """Replace the journal in the data folder by a backup."""
    backup = file.expanduser().absolute()
    console = consoles.stderr()
    if check_only:
        info = check(backup)
        console.print(
            Text(f"{backup} is valid: {_summary(info)}, made {moment(info.made)}"), soft_wrap=True
        )
        return Exit.SUCCESS
    home = data_home()
    with hub_lock(home):
        if agents := agents_in(home / RUNNER):
            raise Conflict(
                "agents_run",
                f"{count(len(agents), 'agent')} of this hub still running: end them first with:"
                " quarterdeck stop",
            )
        done = _restore(backup, home)
        for name, data in done.files.items():
            _put_back(home / name, data, wanted=KEPT.fullmatch(name) is not None)
        for end in ("", "-wal", "-shm"):
            (home / f"{SEARCH}{end}").unlink(missing_ok=True)
    text = f"restored {_summary(done.info)}, made {moment(done.info.made)}"
    console.print(Text(text), soft_wrap=True)
    if done.moved is not None:
        console.print(Text(f"the previous journal is now {done.moved}", "dim"), soft_wrap=True)
    return Exit.SUCCESS


def _restore(backup: Path, home: Path) -> Restored:
    database = _database(unused=True)
    if database is None:
        return restore(backup, home / JOURNAL)
    with TemporaryDirectory(dir=home, prefix=".restore-") as folder:
        journal = Path(folder) / JOURNAL
        done = restore(backup, journal)
        copy(partial(sqlite_tables, journal), database)
        return done


def _database(*, unused: bool = False) -> Opened | None:
    """The database that the configuration names; None if the journal is a file."""
    settings = Configuration().loaded.settings.journal
    if settings.url is None:
        return None
    from quarterdeck.journal.postgres.tables import postgres_tables

    password = database_password(settings)
    return partial(postgres_tables, settings.url, password, unused=unused)


def _kept_files(home: Path) -> dict[str, bytes]:
    paths = [*home.iterdir(), *(home / POLICIES).glob("*.toml")]
    names = {str(path.relative_to(home)): path for path in paths}
    found = {name: path.read_bytes() for name, path in names.items() if KEPT.fullmatch(name)}
    people = copy_of(home)  # a hub may be writing it
    return found if people is None else {**found, PEOPLE: people}


def _put_back(path: Path, data: bytes, *, wanted: bool) -> None:
    """Existing files stay: access that was granted since the backup is kept, for example."""
    if wanted and not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, data)


def _summary(info: BackupInfo) -> str:
    parts = (count(info.sessions, "session"), count(info.events, "event"), size(info.bytes))
    return ", ".join(parts)
