"""The folders of this machine, for choosing a working folder; never above the roots.

Owns what is visible: real folders below a root, by their real paths, so that no link leads out.
`requests` is above. It reads names, and no file.
"""

from __future__ import annotations

import os
from pathlib import Path

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import Folder, Folders, SeeFolders

MOST = 1000


def see_folders(wanted: SeeFolders) -> Folders:
    """List the roots, or the folders in one. Blocks. Raises `Conflict`."""
    roots = _roots(wanted.roots)
    if wanted.path is None:
        return Folders(path=None, folders=tuple(_folder(root, str(root)) for root in roots))
    try:
        here = Path(wanted.path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        here = None
    # A path outside the roots is refused in the same way, whether it exists or not.
    if here is None or not any(here.is_relative_to(root) for root in roots):
        raise Conflict("no_such_folder", f"{wanted.path!r} is not a folder below an allowed root")
    try:
        with os.scandir(here) as entries:
            names = sorted(entry.name for entry in entries if _is_folder(entry))
    except OSError as error:
        raise Conflict("no_such_folder", f"{wanted.path!r}: {error.strerror}") from error
    shown = [name for name in names if not name.startswith(".")]
    return Folders(
        path=_text(here),
        parent=None if here in roots else _text(here.parent),
        folders=tuple(_folder(here / name, name) for name in shown[:MOST]),
        left_out=max(0, len(shown) - MOST),
    )


def _roots(given: tuple[str, ...]) -> list[Path]:
    found: list[Path] = []
    for root in given or ("~",):
        try:
            path = Path(root).expanduser().resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            continue  # not on this machine
        if path.is_dir() and path not in found:
            found.append(path)
    return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _folder(path: Path, name: str) -> Folder:
    return Folder(name=_text(name), path=_text(path), repository=(path / ".git").exists())


def _text(path: str | Path) -> str:
    return str(path).encode(errors="surrogateescape").decode(errors="replace")
