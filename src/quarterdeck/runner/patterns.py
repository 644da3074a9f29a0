"""Patterns of rules that hold at every depth of the project, looked up in one walk through it.

A policy has hundreds of them (`**/.env`, `**/*.pem`). `runner.sandbox` is above; it passes on what
was found as paths, since a sandbox is made of paths. What comes into being later is not found.
Reading blocks: call it from a thread.

The walk is part of the start of a CLI. So what was found in a folder is kept, and the next walk
reads the folder only if its change time differs: every new name in a folder changes it, and no
program can set it.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from threading import Lock

from quarterdeck.domain.structs import Value

PREFIX = "./**/"
"""How such a pattern begins."""
MOST_SEEN = 300_000
"""Names that are looked at, those near the top first: the first walk takes about a second then."""
MOST_FOUND = 300
"""Paths that are found. Each is a mount."""
MOST_KEPT = 16
"""Projects of which the folders are kept. A folder takes some 500 bytes."""
SETTLED = 3.0
"""Seconds after which a folder counts as settled: file systems have times that are this coarse."""
SKIPPED = frozenset(
    {".git", "node_modules", "site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox"}
)
"""Folders that are not looked into. Git's has rules of its own. The others have packages: a
certificate in them is public, and programs fail without it."""
VENV = "pyvenv.cfg"
"""A folder with this file is one of packages, too."""


class LookedUp(Value):
    """The paths that patterns match now."""

    paths: dict[str, tuple[str, ...]]
    """By pattern."""
    complete: bool = True
    """False: the project has too many names, or too many match."""


class _Folder(Value):
    """What one folder has, without the folders below it."""

    stamp: tuple[int, int, int] | None
    """Its device, number and change time; None if it was changed a moment before."""
    seen: int = 0
    hits: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Paths, each with the patterns that match it."""
    below: tuple[str, ...] = ()
    """The folders to be looked into."""


_kept: OrderedDict[tuple[str, ...], dict[str, _Folder]] = OrderedDict()
_lock = Lock()


def look_up(project: str, patterns: Iterable[str]) -> LookedUp:
    """Find what patterns that begin with `./**/` match in a project. Links are not followed."""
    names = _names(tuple(patterns))
    top = project.rstrip("/")
    key = (top, *names.patterns)
    with _lock:
        known = _kept.get(key, {})
    folders: dict[str, _Folder] = {}
    found: dict[str, list[str]] = {pattern: [] for pattern in names.patterns}
    seen = count = 0
    waiting = deque([top]) if names.patterns else deque()
    while waiting and seen <= MOST_SEEN and count < MOST_FOUND:
        path = waiting.popleft()
        folder = _read(path, known.get(path), names)
        folders[path] = folder
        seen += folder.seen
        count += len(folder.hits)
        waiting.extend(folder.below)
        for hit, matching in folder.hits:
            for pattern in matching:
                found[pattern].append(hit)
    with _lock:
        _kept[key] = folders
        _kept.move_to_end(key)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return _result(found, complete=not waiting and seen <= MOST_SEEN)


def is_known(project: str, patterns: Iterable[str]) -> bool:
    """Whether the project was looked through before: then `look_up` takes little time."""
    with _lock:
        return (project.rstrip("/"), *_names(tuple(patterns)).patterns) in _kept


def forget() -> None:
    """Read all folders again the next time."""
    with _lock:
        _kept.clear()


def _read(path: str, known: _Folder | None, names: _Names) -> _Folder:
    """What a folder has: as it is known, if it has not changed since."""
    try:
        status = os.stat(path)  # noqa: PTH116 - there are thousands of them
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        settled = 0 < status.st_ctime < time.time() - SETTLED
        return _scan(path, stamp if settled else None, names)
    except OSError:
        return _Folder(stamp=None)


def _scan(path: str, stamp: tuple[int, int, int] | None, names: _Names) -> _Folder:
    hits: list[tuple[str, tuple[str, ...]]] = []
    below: list[str] = []
    # Written out, because this is done for every file of the project.
    plain, ends, begins, others = names.plain, names.ends, names.begins, names.others
    with os.scandir(path) as scan:
        entries = list(scan)
    for entry in entries:
        name = entry.name
        if (name in plain or name.endswith(ends) or name.startswith(begins) or others(name)) and (
            matching := tuple(names.matches(name, entry.path))
        ):
            hits.append((entry.path, matching))
        elif name == VENV:
            return _Folder(stamp=stamp, seen=1)
        elif name not in SKIPPED and entry.is_dir(follow_symlinks=False):
            below.append(entry.path)
    return _Folder(stamp=stamp, seen=len(entries), hits=tuple(hits), below=tuple(below))


def _result(found: dict[str, list[str]], *, complete: bool) -> LookedUp:
    paths = {pattern: tuple(sorted(each)) for pattern, each in found.items()}
    return LookedUp(paths=paths, complete=complete)


@lru_cache(maxsize=MOST_KEPT)
def _names(patterns: tuple[str, ...]) -> _Names:
    return _Names(patterns)


class _Names:
    """Patterns by the last of their names, since most entries of a project match none."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns: list[str] = []
        # Each pattern, with the names before its last one. Few are ever needed as expressions.
        self.plain: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        self._wild: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for pattern in dict.fromkeys(patterns):
            tail = pattern.removeprefix(PREFIX).removesuffix("/**")
            if not pattern.startswith(PREFIX) or not tail or "**" in tail:
                continue
            self.patterns.append(pattern)
            *before, last = tail.split("/")
            by_name = self._wild if _is_wild(last) else self.plain
            by_name.setdefault(last, []).append((pattern, tuple(before)))
        wild = set(self._wild)
        ends = {name for name in wild if name[0] == "*" and not _is_wild(name[1:])}
        begins = {name for name in wild - ends if name[-1] == "*" and not _is_wild(name[:-1])}
        # An entry can match only if its name is plain, ends or begins so, or is among the others.
        self.ends = tuple(name[1:] for name in ends)
        self.begins = tuple(name[:-1] for name in begins)
        others = "|".join(f"(?:{translate(name)})" for name in wild - ends - begins)
        self.others = re.compile(others or r"(?!)").match

    def matches(self, name: str, path: str) -> Iterable[str]:
        """The patterns that match an entry."""
        found = list(self.plain.get(name, ()))
        for last, patterns in self._wild.items():
            if fnmatchcase(name, last):
                found += patterns
        folder = posixpath.dirname(path)
        for pattern, before in found:
            if not before or _suffix(before).search(folder):
                yield pattern


def _is_wild(name: str) -> bool:
    return bool(set(name) & set("*?["))


@lru_cache(maxsize=1024)
def _suffix(names: tuple[str, ...]) -> re.Pattern[str]:
    """The folders before the last name, at the end of a path."""
    parts = [translate(name).removeprefix("(?s:").removesuffix(r")\Z") for name in names]
    return re.compile("/" + "/".join(part.replace(".*", "[^/]*") for part in parts) + r"\Z")
