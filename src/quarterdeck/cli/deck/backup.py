"""`quarterdeck backup` and `restore`: the hub's data folder as one file, and back.

They work on the data folder itself. A backup can be taken while the hub works; a restore needs it
to be stopped, with all its agents: what they said since the backup would have no place.

A backup holds the journal, who may come in (`access.json`, `cli.secret`), and what webhooks are
signed with (`webhook.secret`). It does not hold what is made anew when it is missing: the search
index, the tokens of this machine's own commands and runner; nor the configuration, which is a file
of the user's own.
"""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from quarterdeck.cli import console as consoles
from quarterdeck.cli.deck.files import size
from quarterdeck.cli.deck.place import (
    CLI_SECRET,
    JOURNAL,
    RUNNER,
    SEARCH,
    agents_in,
    hub_lock,
    write_private,
)
from quarterdeck.cli.deck.story import moment
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.text import count
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.fronts.http.home import data_home
from quarterdeck.journal.sqlite.backup import BackupInfo, back_up, check, restore

KEPT = ("access.json", CLI_SECRET, "webhook.secret")
"""Besides the journal."""


def run_backup(file: Path) -> int:
    """Write a backup, and say what is in it."""
    home = data_home(create=False)
    if not (home / JOURNAL).exists():
        raise UsageError(f"there is nothing to back up: no hub has ever run from {home}")
    target = file.expanduser().absolute()
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is no folder")
    files = {name: (home / name).read_bytes() for name in KEPT if (home / name).exists()}
    info = back_up(home / JOURNAL, target, files)
    consoles.stderr().print(Text(f"{target}: {_told(info)}"), soft_wrap=True)
    return Exit.SUCCESS


def run_restore(file: Path, *, check_only: bool) -> int:
    """Put a backup in the place of the data folder's journal."""
    backup = file.expanduser().absolute()
    console = consoles.stderr()
    if check_only:
        info = check(backup)
        console.print(
            Text(f"{backup} is good: {_told(info)}, made {moment(info.made)}"), soft_wrap=True
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
            # Whoever got access since the backup keeps it.
            if name in KEPT and not (home / name).exists():
                write_private(home / name, data)
        for end in ("", "-wal", "-shm"):
            (home / f"{SEARCH}{end}").unlink(missing_ok=True)
    told = f"restored {_told(done.info)}, made {moment(done.info.made)}"
    console.print(Text(told), soft_wrap=True)
    if done.moved is not None:
        console.print(
            Text(f"the journal that was there is now {done.moved}", "dim"), soft_wrap=True
        )
    return Exit.SUCCESS


def _told(info: BackupInfo) -> str:
    parts = (count(info.sessions, "session"), count(info.events, "event"), size(info.bytes))
    return ", ".join(parts)
