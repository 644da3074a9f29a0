"""Placeholders: what bubblewrap needs to protect a path that does not exist.

Owns making and removing them. `open` is above; the file system is below.

bubblewrap can make a path read-only only if there is something to mount on. So a reserved path that
does not exist is made before the start: as an empty folder, which git ignores, or with a content
that git takes for nothing. It is removed when the last sandbox that uses it has ended. A lock for
each path tells: the runner and every process in the sandbox hold it. A placeholder is known by its
time, the first second of 1970, and by being empty; what a person has put there is never removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import posixpath
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CONTENTS = {"commondir": b".\n", "config.worktree": b""}
"""Names that are files, and what makes no difference to git in them."""
TIME = 1
"""The time of a placeholder, in seconds since 1970."""


class Placeholders:
    """The placeholders of one sandbox. Blocks: call it from a thread."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Make those that do not exist, and hold their locks. What cannot be made is left out."""
        self.paths: list[str] = []
        self.locks: list[str] = []
        self._held: list[int] = []
        if not (wanted := list(paths)):
            return
        with _alone() as folder:
            for path in wanted:
                if not posixpath.lexists(path):
                    with suppress(OSError):
                        _make(path)
                if is_placeholder(path):
                    lock = _lock_of(path, folder)
                    file = os.open(lock, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    fcntl.flock(file, fcntl.LOCK_SH)
                    self.paths.append(path)
                    self.locks.append(lock)
                    self._held.append(file)

    def close(self) -> None:
        """Remove those that no other sandbox uses. Safe to call twice."""
        if not self.paths:
            return
        with _alone():
            for file in self._held:
                os.close(file)
            for path, lock in zip(self.paths, self.locks, strict=True):
                with suppress(OSError):
                    _remove_unused(path, lock)
        self.paths, self.locks, self._held = [], [], []


def _remove_unused(path: str, lock: str) -> None:
    file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if another process holds it
        Path(lock).unlink()
        if is_placeholder(path):
            _remove(path)
    finally:
        os.close(file)


def is_placeholder(path: str) -> bool:
    """Whether a path was made here, and nobody has used it since."""
    try:
        found = os.lstat(path)
        if found.st_mtime_ns != TIME * 10**9:
            return False
        content = CONTENTS.get(posixpath.basename(path))
        if content is None:
            return not os.listdir(path)  # noqa: PTH208 - only whether there is one
        return Path(path).read_bytes() == content
    except OSError:
        return False


def _make(path: str) -> None:
    content = CONTENTS.get(posixpath.basename(path))
    if content is None:
        Path(path).mkdir(mode=0o755)
    else:
        # Git must never read half of it.
        made = Path(f"{path}.quarterdeck")
        made.write_bytes(content)
        try:
            os.link(made, path)
        finally:
            made.unlink()
    os.utime(path, (TIME, TIME))


def _remove(path: str) -> None:
    if posixpath.basename(path) in CONTENTS:
        Path(path).unlink()
    else:
        Path(path).rmdir()


@contextmanager
def _alone() -> Iterator[Path]:
    """Be the only one of this user who makes or removes placeholders; gives the folder of locks."""
    folder = Path(tempfile.gettempdir()) / f"quarterdeck-locks-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another user")
    file = os.open(folder / "alone", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(file)


def _lock_of(path: str, folder: Path) -> str:
    """The lock file of a path: one for all runners of this user."""
    return str(folder / hashlib.sha256(os.fsencode(path)).hexdigest()[:32])
