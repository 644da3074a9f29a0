"""Files that are replaced as a whole."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

PRIVATE = 0o600


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the contents of a file, or create it, readable by its owner only.

    Readers see the old contents or the new ones, never a part. On an error the old file stays and
    `OSError` is raised. `durable`: the new contents survive a power failure once this returns.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_native_id()}.new")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


LOCK_SECONDS = 2.0
"""A process that only checks whether a lock is held has it for an instant; this wait is longer."""


def lock_file(file: int, kind: int, *, seconds: float = LOCK_SECONDS) -> bool:
    """Lock an open file with `LOCK_EX` or `LOCK_SH`. Returns False if that was not possible in
    time.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True
