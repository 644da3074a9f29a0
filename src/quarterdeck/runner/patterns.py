"""Patterns of rules that hold at every depth of the project, looked up in one walk through it.

A policy has hundreds of them (`**/.env`, `**/*.pem`). `runner.sandbox` is above; it passes on what
was found as paths, since a sandbox is made of paths. What comes into being later is not found.
Reading blocks: call it from a thread.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import deque
from collections.abc import Iterable
from fnmatch import translate

from quarterdeck.domain.structs import Value

PREFIX = "./**/"
"""How such a pattern begins."""
MOST_SEEN = 10_000
"""Names that are looked at, those near the top first: some 30 ms."""
MOST_FOUND = 300
"""Paths that are found. Each is a mount."""
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


def look_up(project: str, patterns: Iterable[str]) -> LookedUp:
    """Find what patterns that begin with `./**/` match in a project. Links are not followed."""
    names = _Names(patterns)
    found: dict[str, list[str]] = {pattern: [] for pattern in names.patterns}
    seen = count = 0
    waiting = deque([project.rstrip("/")])
    while waiting:
        folder = waiting.popleft()
        try:
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError:
            continue
        if any(entry.name == VENV for entry in entries):
            continue
        for entry in entries:
            seen += 1
            if seen > MOST_SEEN or count >= MOST_FOUND:
                return _result(found, complete=False)
            hit = False
            if names.may_match(entry.name):
                for pattern in names.matching(entry.name, entry.path):
                    found[pattern].append(entry.path)
                    hit = True
                count += hit
            if not hit and entry.name not in SKIPPED and entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return _result(found, complete=True)


def _result(found: dict[str, list[str]], *, complete: bool) -> LookedUp:
    paths = {pattern: tuple(sorted(each)) for pattern, each in found.items()}
    return LookedUp(paths=paths, complete=complete)


class _Names:
    """Patterns by the last of their names, since most entries of a project match none."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns: list[str] = []
        self._plain: dict[str, list[tuple[str, re.Pattern[str] | None]]] = {}
        self._wild: list[tuple[str, re.Pattern[str], re.Pattern[str] | None]] = []
        for pattern in dict.fromkeys(patterns):
            tail = pattern.removeprefix(PREFIX).removesuffix("/**")
            if not pattern.startswith(PREFIX) or not tail or "**" in tail:
                continue
            self.patterns.append(pattern)
            *before, last = tail.split("/")
            around = _suffix(before) if before else None
            if set(last) & set("*?["):
                self._wild.append((pattern, re.compile(translate(last)), around))
            else:
                self._plain.setdefault(last, []).append((pattern, around))
        self._any_wild = re.compile(
            "|".join(f"(?:{name.pattern})" for _, name, _ in self._wild) or r"(?!)"
        )

    def may_match(self, name: str) -> bool:
        """Whether a pattern ends in this name. Most names end none, and this is quick."""
        return name in self._plain or self._any_wild.match(name) is not None

    def matching(self, name: str, path: str) -> Iterable[str]:
        """The patterns that match an entry."""
        for pattern, around in self._plain.get(name, ()):
            if around is None or around.search(posixpath.dirname(path)):
                yield pattern
        if self._any_wild.match(name):
            for pattern, expression, around in self._wild:
                if expression.match(name) and (
                    around is None or around.search(posixpath.dirname(path))
                ):
                    yield pattern


def _suffix(names: list[str]) -> re.Pattern[str]:
    """The folders before the last name, at the end of a path."""
    parts = [translate(name).removeprefix("(?s:").removesuffix(r")\Z") for name in names]
    return re.compile("/" + "/".join(part.replace(".*", "[^/]*") for part in parts) + r"\Z")
