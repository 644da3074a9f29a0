"""`quarterdeck backup` and `restore`: the hub's data folder as one file, and back.

They work on the data folder itself. A backup can be taken while the hub works; a restore needs it
to be stopped, with all its agents: what they said since the backup would have no place.

A backup holds the journal, who may come in (`access.json`, `cli.secret`), what may be done without
a question (policies and grants), and what webhooks are signed with. It does not hold what is made
anew when it is missing: the search index, the tokens of this machine's own commands and runner; nor
the configuration, which is a file of the user's own.
"""

from __future__ import annotations

import re
from pathlib import Path

from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.files import size
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.text import count, moment
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.hub.permissions.policies import NAMED as POLICIES
from quarterdeck.journal.sqlite.backup import BackupInfo, back_up, check, restore
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.runtime.files import replace_file
from quarterdeck.service.local_hub import (
    JOURNAL,
    RUNNER,
    SEARCH,
    agents_in,
    hub_lock,
)

KEPT = re.compile(
    r"access\.json|cli\.secret|webhook\.secret|grants\.json|policy\.toml"
    r"|policies/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\.toml"
)
"""The files besides the journal. Of a backup, no other name is put anywhere."""


def run_backup(file: Path) -> int:
    """Write a backup, and say what is in it."""
    home = data_home(create=False)
    if not (home / JOURNAL).exists():
        raise UsageError(f"there is nothing to back up: no hub has ever run from {home}")
    target = file.expanduser().absolute()
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is no folder")
    info = back_up(home / JOURNAL, target, _kept_files(home))
    consoles.stderr().print(Text(f"{target}: {_summary(info)}"), soft_wrap=True)
    return Exit.SUCCESS


def run_restore(file: Path, *, check_only: bool) -> int:
    """Put a backup in the place of the data folder's journal."""
    backup = file.expanduser().absolute()
    console = consoles.stderr()
    if check_only:
        info = check(backup)
        console.print(
            Text(f"{backup} is good: {_summary(info)}, made {moment(info.made)}"), soft_wrap=True
        )
        return Exit.SUCCESS
    home = data_home()
    with hub_lock(home):
        if agents := agents_in(home / RUNNER):
            raise Conflict(
                "agents_run",
                f"{count(len(agents), 'agent')} of this hub still run: end them first with:"
                " quarterdeck stop",
            )
        done = restore(backup, home / JOURNAL)
        for name, data in done.files.items():
            _put_back(home / name, data, wanted=KEPT.fullmatch(name) is not None)
        for end in ("", "-wal", "-shm"):
            (home / f"{SEARCH}{end}").unlink(missing_ok=True)
    text = f"restored {_summary(done.info)}, made {moment(done.info.made)}"
    console.print(Text(text), soft_wrap=True)
    if done.moved is not None:
        console.print(
            Text(f"the journal that was there is now {done.moved}", "dim"), soft_wrap=True
        )
    return Exit.SUCCESS


def _kept_files(home: Path) -> dict[str, bytes]:
    paths = [*home.iterdir(), *(home / POLICIES).glob("*.toml")]
    names = {str(path.relative_to(home)): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if KEPT.fullmatch(name)}


def _put_back(path: Path, data: bytes, *, wanted: bool) -> None:
    """What is there stays: whoever got access since the backup keeps it, and so for the rest."""
    if wanted and not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, data)


def _summary(info: BackupInfo) -> str:
    parts = (count(info.sessions, "session"), count(info.events, "event"), size(info.bytes))
    return ", ".join(parts)
