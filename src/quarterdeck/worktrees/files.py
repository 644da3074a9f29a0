"""A file that a person stores in a working folder of this machine.

Owns where it may be: below the folder, by real paths, so that no link leads out, and not in the
data of git. A file that is there is not replaced. `requests` is above.
"""

from __future__ import annotations

import os
from pathlib import Path

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import PutFile, StoredFile

LARGEST = 24 * 1024 * 1024


def put_file(wanted: PutFile) -> StoredFile:
    """Store it. Blocks. Raises `Conflict`."""
    if len(wanted.data) > LARGEST:
        raise Conflict("too_large", f"a file of at most {LARGEST} bytes can be stored")
    target = target_of(Path(wanted.directory), wanted.path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_unlinked(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError as error:
        raise Conflict("file_exists", f"{wanted.path!r} is there already") from error
    except OSError as error:
        raise Conflict("no_such_folder", f"{wanted.path!r}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(wanted.data)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise Conflict("not_stored", f"{wanted.path!r}: {error.strerror}") from error
    return StoredFile(path=str(target), size=len(wanted.data))


def open_unlinked(target: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file by its real path, and follow no link on the way. Raises `OSError`.

    An agent may put a link in the place of a folder after the path was looked up; then the file of
    another user would be opened, which the agent itself cannot.
    """
    anchor, *folders, name = target.parts
    where = os.open(anchor, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            step = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(folder, step, dir_fd=where)
            os.close(where)
            where = inner
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=where)
    finally:
        os.close(where)


def target_of(directory: Path, path: str) -> Path:
    """The real path of the file. Raises `Conflict` if it is not below the folder."""
    if not path or "\0" in path or len(path) > 4096:
        raise Conflict("bad_path", "path: must be the path of a file")
    try:
        root = directory.resolve(strict=True)
        given = Path(path)
        whole = given if given.is_absolute() else root / given
        target = whole.parent.resolve() / whole.name
    except (OSError, RuntimeError, ValueError) as error:
        raise Conflict("no_such_folder", f"{path!r} cannot be looked up") from error
    if target == root or not target.is_relative_to(root) or whole.name in {"", ".", ".."}:
        raise Conflict("bad_path", f"{path!r} is not below the folder of the session")
    if any(part.lower() == ".git" for part in target.relative_to(root).parts):
        raise Conflict("bad_path", f"{path!r} belongs to git")
    return target
