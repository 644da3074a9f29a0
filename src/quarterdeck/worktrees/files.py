"""Files of a working folder of this machine: which paths are taken, and what is read and stored.

A file that a person stores is below the folder, by real paths, so that no link leads out, and not
in the data of git. A file that is there is not replaced. For a person who decides about a
replacement, regular files below the folder are read that are not too large. A link is not followed,
also one that was put in the place of a folder meanwhile. What would block, such as a pipe, is not
read. `requests`, `file_diff`, `revert` and `commits` are above.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import FileState, PutFile, SeeFile, SeenFile, StoredFile

MOST_PATHS = 2000


def checked_path(path: str) -> str:
    """The path itself. Raises `Conflict` unless it is one of a file below the folder."""
    parts = PurePosixPath(path).parts
    bad = (
        not parts
        or path.startswith("/")
        or path.endswith("/")
        or "\0" in path
        or len(path) > 4096
        or ".." in parts
        or any(part.lower() == ".git" for part in parts)
    )
    if bad:
        raise Conflict("bad_path", f"{path!r} is no path of a file in the repository")
    return path


def checked_paths(paths: tuple[str, ...]) -> bytes:
    """The paths as git reads them from its input. Raises `Conflict`."""
    if not 0 < len(paths) <= MOST_PATHS:
        raise Conflict("bad_path", f"paths: name 1 to {MOST_PATHS} files")
    return "\0".join(checked_path(path) for path in paths).encode()


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
