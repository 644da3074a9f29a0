"""Paths of files below the top folder of a repository, as people and programs send them.

Owns which of them are taken. `file_diff`, `revert` and `commits` are above.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from quarterdeck.domain.errors import Conflict

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
