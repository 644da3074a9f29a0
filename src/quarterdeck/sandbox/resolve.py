"""From a spec to the paths of this machine: links followed, wildcards expanded, gaps noted.

`open` is above; the file system is below. It makes the folders that the spec says are made, and
changes nothing else. It blocks: call it from a thread.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from quarterdeck.domain.structs import Value
from quarterdeck.sandbox.placeholders import is_placeholder
from quarterdeck.sandbox.plan import is_pattern
from quarterdeck.sandbox.spec import SandboxSpec

MOST_SEEN = 50_000
"""Names that are looked at for one pattern: some 100 ms."""
MOST_FOUND = 200
"""Paths of one pattern. Each is a mount, and more would take seconds."""
MOST_PATTERNS = 50
"""Patterns that are looked up: they take time at the start."""
EMPTY_STATE = b"{}\n"


class Access(StrEnum):
    """What can be done with a path."""

    WRITABLE = "writable"
    READ_ONLY = "read_only"
    HIDDEN = "hidden"


_RANK = {Access.WRITABLE: 0, Access.READ_ONLY: 1, Access.HIDDEN: 2}


class Resolved(Value):
    """The paths of a spec on this machine. A path decides for all below it that is not listed."""

    entries: dict[str, Access]
    """Each differs from what is around it. Without `/`, which is read-only."""
    missing: tuple[str, ...] = ()
    """Reserved paths that do not exist, in folders that are writable."""
    private: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    not_enforced: tuple[str, ...] = ()


def resolve(
    spec: SandboxSpec, needed: Iterable[str] = (), replaced: Iterable[str] = ()
) -> Resolved:
    """Find the paths of a spec. `needed` are paths that must at least be readable.

    `replaced` are folders that the kind shows with other content: nothing in them can be seen that
    is not listed.
    """
    for folder in spec.created:
        if not posixpath.isdir(folder):
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in spec.copied:
        _make_state(file)
    gaps: list[str] = []
    found: dict[str, Access] = {}
    true_path = _TruePaths()
    # Those of another sandbox may go at any time: they are asked for again, which holds them.
    placeholders = {_true_name(path) for path in spec.reserved if is_placeholder(path)}
    patterns = [path for path in (*spec.read_only, *spec.hidden) if is_pattern(path)]
    late = set(patterns[MOST_PATTERNS:])
    gaps += [f"{path}: too many patterns" for path in patterns[MOST_PATTERNS:]]

    def take(paths: Iterable[str], access: Access) -> None:
        for path in paths:
            for each in () if path in late else _expanded(path, gaps):
                true = true_path(each)
                if (
                    true is not None
                    and true != "/"
                    and true not in placeholders
                    and _RANK[access] >= _RANK[found.get(true, Access.WRITABLE)]
                ):
                    found[true] = access

    take(spec.writable, Access.WRITABLE)
    take(spec.read_only, Access.READ_ONLY)
    take(spec.hidden, Access.HIDDEN)
    for path in needed:
        found.setdefault(posixpath.realpath(path), Access.READ_ONLY)
    entries = without_repeats({**found, **dict.fromkeys(replaced, Access.HIDDEN)})
    for path in replaced:
        entries.pop(path, None)
    gaps += _links(spec, entries)
    missing = [
        _true_name(path)
        for path in spec.reserved
        if (not posixpath.lexists(path) and posixpath.isdir(posixpath.dirname(path)))
        or _true_name(path) in placeholders
    ]
    return Resolved(
        entries=entries,
        missing=tuple(p for p in missing if access_of(p, entries) is Access.WRITABLE),
        private=tuple(posixpath.realpath(path) for path in spec.private),
        copied=tuple(posixpath.realpath(path) for path in spec.copied),
        not_enforced=tuple(gaps),
    )


def access_of(path: str, entries: Mapping[str, Access]) -> Access:
    """What can be done with a path: the deepest entry that it is in decides."""
    while path != "/":
        if (access := entries.get(path)) is not None:
            return access
        path = posixpath.dirname(path)
    return Access.READ_ONLY


def without_repeats(found: Mapping[str, Access]) -> dict[str, Access]:
    """The entries that differ from what is around them, outer ones first."""
    kept: dict[str, Access] = {}
    for path in sorted(found, key=lambda each: (each.count("/"), each)):
        if access_of(path, kept) is not found[path]:
            kept[path] = found[path]
    return kept


def _make_state(file: str) -> None:
    """The CLI makes this file at its first start, and ends if it cannot."""
    if not posixpath.lexists(file):
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        with os.fdopen(descriptor, "wb") as out:
            out.write(EMPTY_STATE)


class _TruePaths:
    """Paths without links. Most are in a few folders, and each folder is looked up once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def __call__(self, path: str) -> str | None:
        """The true path; None if there is nothing."""
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return None
        if stat.S_ISLNK(found.st_mode):
            return posixpath.realpath(path)
        folder, name = posixpath.split(path)
        if folder not in self._folders:
            self._folders[folder] = posixpath.realpath(folder)
        return posixpath.join(self._folders[folder], name)


def _true_name(path: str) -> str:
    return posixpath.join(posixpath.realpath(posixpath.dirname(path)), posixpath.basename(path))


def _links(spec: SandboxSpec, entries: Mapping[str, Access]) -> list[str]:
    """Protected names that are links in a writable folder: the link can be replaced."""
    return [
        f"{path}: it is a link, and can be replaced by another"
        for path in (*spec.read_only, *spec.hidden)
        if posixpath.islink(path) and access_of(_true_name(path), entries) is Access.WRITABLE
    ]


# --- wildcards -----------------------------------------------------------------------------------


def _expanded(path: str, gaps: list[str]) -> list[str]:
    if not is_pattern(path):
        return [path]
    found, whole = expand(path)
    if not whole:
        gaps.append(f"{path}: too many files")
    return found


def expand(pattern: str) -> tuple[list[str], bool]:
    """The paths that a pattern matches now, as in gitignore, and whether these are all.

    `*` and `?` stand for no slash, `**` for any number of folders. Links are not followed.
    """
    names = pattern.split("/")
    first = next(index for index, name in enumerate(names) if is_pattern(name))
    root = "/".join(names[:first]) or "/"
    expression = re.compile(_translated(names[first:]), re.DOTALL)
    deep = "**" in names[first:]
    levels = len(names) - first
    found: list[str] = []
    seen = 0
    waiting = [(root, 1)]
    while waiting:
        folder, level = waiting.pop()
        try:
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > MOST_SEEN or len(found) >= MOST_FOUND:
                return found, False
            if expression.fullmatch(entry.path[len(root.rstrip("/")) + 1 :]):
                found.append(entry.path)
            elif (deep or level < levels) and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, level + 1))
    return found, True


def _translated(names: list[str]) -> str:
    parts: list[str] = []
    for index, name in enumerate(names):
        last = index == len(names) - 1
        if name == "**":
            parts.append(".*" if last else "(?:[^/]+/)*")
        else:
            parts.append(_name(name) + ("" if last else "/"))
    return "".join(parts)


def _name(name: str) -> str:
    """One name of a pattern as a regular expression; classes as the shell has them."""
    parts: list[str] = []
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        if char == "*":
            parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif char == "[" and (end := name.find("]", at + 1)) > 0:
            inner = name[at:end].replace("\\", "\\\\")
            parts.append("[" + ("^" + inner[1:] if inner.startswith("!") else inner) + "]")
            at = end + 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)
