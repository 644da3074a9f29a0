"""A look at a disk that is bounded in time and number: all names below a folder, and its links.

Blocks: call it in a thread. It follows no links, so it ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

MOST_ENTRIES = 30_000
LONGEST_LOOK = 0.25
"""Seconds. A folder that takes longer is not known."""

Found = tuple[list[str], list[tuple[str, str]]]
"""Relative paths, and links with their true paths."""


def look_below(
    folder: str,
    left_out: frozenset[str] = frozenset(),
    *,
    most: int = MOST_ENTRIES,
    clock: Callable[[], float] = time.monotonic,
) -> Found | None:
    """All that is below a folder; None if there is too much, or if a part cannot be read.

    `left_out` are folders that are not looked into, by their names or by their last two names.
    """
    paths: list[str] = []
    links: list[tuple[str, str]] = []
    waiting = [""]
    end = clock() + LONGEST_LOOK
    while waiting:
        inside = waiting.pop()
        if clock() > end:
            return None
        try:
            with os.scandir(f"{folder}/{inside}" if inside else folder) as entries:
                for entry in entries:
                    path = f"{inside}/{entry.name}" if inside else entry.name
                    paths.append(path)
                    if len(paths) > most:
                        return None
                    if entry.is_symlink():
                        links.append((path, os.path.realpath(entry.path)))
                    elif entry.is_dir(follow_symlinks=False) and not _is_left_out(path, left_out):
                        waiting.append(path)
        except NotADirectoryError:
            return [], []
        except FileNotFoundError:
            if not inside:
                return [], []
        except (OSError, ValueError):
            return None
    return paths, links


def _is_left_out(path: str, left_out: frozenset[str]) -> bool:
    names = path.split("/")
    return names[-1] in left_out or "/".join(names[-2:]) in left_out
