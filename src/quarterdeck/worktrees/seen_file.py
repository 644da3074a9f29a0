"""What is in a file of a working folder now, for a person who decides about its replacement.

Owns which files are read: regular ones below the folder, by real paths, that are not too large. A
link is not followed, also one that was put in the place of a folder meanwhile. What would block,
such as a pipe, is not read. `requests` is above.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import FileState, SeeFile, SeenFile
from quarterdeck.worktrees.files import open_unlinked, target_of

LARGEST_TEXT = 1024 * 1024
"""Bytes. A person cannot review the diff of a longer file in a card."""


def see_file(wanted: SeeFile) -> SeenFile:
    """Read it. Blocks."""
    try:
        target = target_of(Path(wanted.directory), wanted.path)
    except Conflict as refused:
        missing = refused.code == "no_such_folder"
        state = FileState.MISSING if missing else FileState.OUTSIDE
        return SeenFile(path=wanted.path, state=state)
    state, data, size = _read(target)
    if state is FileState.TEXT:
        try:
            return SeenFile(path=str(target), state=state, text=data.decode(), size=size)
        except UnicodeDecodeError:
            state = FileState.BINARY
    return SeenFile(path=str(target), state=state, size=size)


def _read(target: Path) -> tuple[FileState, bytes, int]:
    # Without blocking: a pipe with nobody at its other end would wait for ever.
    try:
        descriptor = open_unlinked(target, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return FileState.MISSING, b"", 0
    except OSError:
        return (FileState.LINK if target.is_symlink() else FileState.OTHER), b"", 0
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return FileState.OTHER, b"", 0
    with os.fdopen(descriptor, "rb") as file:
        # It may grow while it is read.
        data = b"" if found.st_size > LARGEST_TEXT else file.read(LARGEST_TEXT + 1)
        if found.st_size > LARGEST_TEXT or len(data) > LARGEST_TEXT:
            return FileState.TOO_LARGE, b"", found.st_size
        return (FileState.BINARY if b"\0" in data else FileState.TEXT), data, len(data)
