"""Which branch is checked out in a folder of this machine. It starts no process: git is slow.

The files are an agent's to change: what is wrong or too long counts as no branch.
"""

from __future__ import annotations

from pathlib import Path

MOST_LEVELS = 64
"""The number of parent folders in which a repository is looked for."""
MOST_BYTES = 4096
"""The size up to which git's pointer files are read."""


def branch_of(folder: str) -> str | None:
    """The branch that is checked out in a folder of this machine; None where it is not known.

    A detached head and a folder without a repository have none that a rule could be about.
    """
    place = Path(folder)
    for _ in range(MOST_LEVELS):
        git = place / ".git"
        if git.is_file():
            pointer = _first_line(git)
            if not pointer.startswith("gitdir: "):
                return None
            git = (place / pointer.removeprefix("gitdir: ")).resolve()
        if git.is_dir():
            head = _first_line(git / "HEAD")
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else None
        if place.parent == place:
            return None
        place = place.parent
    return None


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline(MOST_BYTES).strip()
    except (OSError, UnicodeDecodeError):
        return ""
