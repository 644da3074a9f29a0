"""What is below a folder, as far as a caller has looked: names of files, and links.

A command that reads a whole folder, or all files that fit a pattern, meets a rule about one file
only if that file is there. Policy does not look at a disk: a caller that can look gives a function
that makes a `Tree`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from quarterdeck.domain.structs import Value
from quarterdeck.policy.overlap import names_overlap

_WILD = re.compile(r"[*?\[]")
LEFT_OUT = frozenset({"node_modules", ".git/objects"})
"""Folders that are not looked into: they are large. A rule that names them may mean what is in
them."""


LEFT_OUT_NAMES = frozenset(name.rpartition("/")[2] for name in LEFT_OUT)


def is_wild(name: str) -> bool:
    """Whether a name of a pattern means several names."""
    return _WILD.search(name) is not None


class Tree(Value):
    """What is below a folder."""

    names: Mapping[str, tuple[str, ...]] = {}
    """For every name of a file or folder, the paths that have it, relative to the folder."""

    folders: frozenset[str] = frozenset()
    """Which of the paths are folders with something in them."""

    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links: the relative path, and the true one."""

    def paths_called(self, pattern: str) -> Iterator[str]:
        """The paths whose last name fits a pattern."""
        if not is_wild(pattern):
            yield from self.names.get(pattern, ())
            return
        for name, paths in self.names.items():
            if names_overlap(pattern, name, True):
                yield from paths

    def has_below(self, folder: str, pattern: str) -> bool:
        """Whether a folder holds, at any depth, something whose name fits a pattern."""
        start = f"{folder}/"
        return any(path.startswith(start) for path in self.paths_called(pattern))


LookBelow = Callable[[str], Tree | None]
"""Looks below a folder. None: there is too much, or it cannot be read."""


def look_once(
    look: Callable[[str], tuple[Iterable[str], Iterable[tuple[str, str]]] | None],
) -> LookBelow:
    """A function that looks below each folder at most once. For one call: files change."""
    known: dict[str, Tree | None] = {}

    def below(folder: str) -> Tree | None:
        if folder not in known:
            found = look(folder)
            known[folder] = None if found is None else _tree(*found)
        return known[folder]

    return below


def _tree(paths: Iterable[str], links: Iterable[tuple[str, str]]) -> Tree:
    names: dict[str, list[str]] = {}
    folders: set[str] = set()
    for path in paths:
        folder, _, name = path.rpartition("/")
        names.setdefault(name, []).append(path)
        folders.add(folder)
    return Tree(
        names={name: tuple(each) for name, each in names.items()},
        folders=frozenset(folders),
        links=tuple(links),
    )
