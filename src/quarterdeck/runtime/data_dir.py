"""The data folder: its location, and its permissions.

Owns the location only. The service puts the journal, the tokens and the spool into it.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from quarterdeck.domain.errors import UsageError

PRIVATE_FOLDER = 0o700
PROGRAM_TOKEN = "program.token"  # noqa: S105 - the name of a file
"""The token of this user's programs, in the data folder. The hub makes it."""


def data_home(create: bool = True) -> Path:
    """The data folder: QUARTERDECK_HOME, or the platform's default; private to its user.

    Raises `UsageError` when the folder belongs to another user or cannot be made.
    """
    chosen = os.environ.get("QUARTERDECK_HOME", "")
    if chosen and not Path(chosen).expanduser().is_absolute():
        raise UsageError("QUARTERDECK_HOME: expected an absolute path")
    folder = Path(chosen).expanduser() if chosen else _default_folder()
    if create:
        make_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Make the folder if it is not there, and close it to everybody but its user."""
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise UsageError(f"data folder {folder}: {error.strerror}") from error
    if found.st_uid != os.geteuid():
        raise UsageError(f"data folder {folder}: it belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(PRIVATE_FOLDER)
    _keep_out_of_git(folder)


def _keep_out_of_git(folder: Path) -> None:
    """Make git ignore the folder: it may be inside a repository, and it holds secrets."""
    file = folder / ".gitignore"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(b"*\n")
    except FileExistsError:
        return
    except OSError as error:
        raise UsageError(f"data folder {folder}: {error.strerror}") from error


def _default_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "quarterdeck"
    base = os.environ.get("XDG_DATA_HOME", "")
    if base and Path(base).is_absolute():
        return Path(base) / "quarterdeck"
    return Path.home() / ".local" / "share" / "quarterdeck"
