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
from functools import lru_cache
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
    listing = _Listings()
    # Those of another sandbox may go at any time: they are asked for again, which holds them.
    placeholders = {true_path.name(path) for path in spec.reserved if is_placeholder(path)}
    patterns = [path for path in (*spec.read_only, *spec.hidden) if is_pattern(path)]
    late = set(patterns[MOST_PATTERNS:])
    gaps += [f"{path}: too many patterns" for path in patterns[MOST_PATTERNS:]]

    def take(paths: Iterable[str], access: Access) -> None:
        for path in paths:
            each: tuple[str, ...] = (path,)
            if is_pattern(path):
                each = () if path in late else _expand(path, gaps, listing)
            for true in map(true_path, each):
                if (
                    true is not None
                    and true != "/"
                    and true not in placeholders
                    and _RANK[access] >= _RANK[found.get(true, Access.WRITABLE)]
                ):
                    found[true] = access

    take(spec.writable, Access.WRITABLE)
    true_path.links.clear()  # only those count that protect something
    take(spec.read_only, Access.READ_ONLY)
    take(spec.hidden, Access.HIDDEN)
    for path in needed:
        found.setdefault(posixpath.realpath(path), Access.READ_ONLY)
    entries = without_repeats({**found, **dict.fromkeys(replaced, Access.HIDDEN)})
    for path in replaced:
        entries.pop(path, None)
    gaps += _links(true_path, entries)
    missing = [
        true_path.name(path)
        for path in spec.reserved
        if (not posixpath.lexists(path) and posixpath.isdir(posixpath.dirname(path)))
        or true_path.name(path) in placeholders
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
        self.links: dict[str, None] = {}
        """Paths that are links themselves."""

    def __call__(self, path: str) -> str | None:
        """The true path; None if there is nothing."""
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return None
        if stat.S_ISLNK(mode):
            self.links[path] = None
            return posixpath.realpath(path)
        return self.name(path)

    def name(self, path: str) -> str:
        """A path in its true folder, whatever is there."""
        folder, _, name = path.rpartition("/")
        if (true := self._folders.get(folder)) is None:
            true = self._folders[folder] = posixpath.realpath(folder or "/").rstrip("/")
        return f"{true}/{name}"


class _Listings:
    """The names in folders, each read once: several patterns are about the same folder."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    def __call__(self, folder: str) -> list[str]:
        """The names in a folder; none if it cannot be read."""
        if (known := self._known.get(folder)) is None:
            try:
                known = os.listdir(folder)  # noqa: PTH208 - names are enough
            except OSError:
                known = []
            self._known[folder] = known
        return known


def _links(true_path: _TruePaths, entries: Mapping[str, Access]) -> list[str]:
    """Protected names that are links in a writable folder: the link can be replaced."""
    return [
        f"{path}: it is a link, and can be replaced by another"
        for path in true_path.links
        if access_of(true_path.name(path), entries) is Access.WRITABLE
    ]


# --- wildcards -----------------------------------------------------------------------------------


def _expand(pattern: str, gaps: list[str], listing: _Listings) -> tuple[str, ...]:
    found, whole = expand(pattern, listing)
    if not whole:
        gaps.append(f"{pattern}: too many files")
    return tuple(found)


def expand(pattern: str, listing: _Listings | None = None) -> tuple[list[str], bool]:
    """The paths that a pattern matches now, as in gitignore, and whether these are all.

    `*` and `?` stand for no slash, `**` for any number of folders. Links are not followed.
    """
    names = pattern.split("/")
    first = next(index for index, name in enumerate(names) if is_pattern(name))
    root = "/".join(names[:first]) or "/"
    if "**" not in names[first:]:
        return _step_by_step(root, names[first:], listing or _Listings())
    expression = re.compile(_translate(names[first:]), re.DOTALL)
    found: list[str] = []
    seen = 0
    waiting = [root]
    while waiting:
        folder = waiting.pop()
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
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found, True


def _step_by_step(root: str, names: list[str], listing: _Listings) -> tuple[list[str], bool]:
    """What matches one name after the other: only folders that fit are looked into."""
    paths = [root.rstrip("/")]
    seen = 0
    for number, name in enumerate(names):
        if not is_pattern(name):
            paths = [f"{path}/{name}" for path in paths]
            continue
        matches = _expression(name).fullmatch
        found: list[str] = []
        for path in paths:
            inside = listing(path or "/")
            seen += len(inside)
            found += [f"{path}/{each}" for each in inside if matches(each)]
            if seen > MOST_SEEN:
                return (found[:MOST_FOUND] if number == len(names) - 1 else []), False
        more = number < len(names) - 1
        paths = [path for path in found if not (more and posixpath.islink(path))]
    paths = [path for path in paths if posixpath.lexists(path)]
    return paths[:MOST_FOUND], len(paths) <= MOST_FOUND


def _translate(names: list[str]) -> str:
    parts: list[str] = []
    for index, name in enumerate(names):
        last = index == len(names) - 1
        if name == "**":
            parts.append(".*" if last else "(?:[^/]+/)*")
        else:
            parts.append(_name(name) + ("" if last else "/"))
    return "".join(parts)


@lru_cache(maxsize=256)
def _expression(name: str) -> re.Pattern[str]:
    return re.compile(_name(name), re.DOTALL)


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
