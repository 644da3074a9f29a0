"""Which path patterns can concern a request at all, by the names in its paths.

A rule about secrets has hundreds of patterns, and each would be compared with each file of a call.
Most patterns have a name without wildcards that every path they match must contain: `.ssh` for
`**/.ssh`. If no path of the call has that name, the pattern cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import methodcaller

from quarterdeck.domain.structs import Value
from quarterdeck.policy.folders import Folders
from quarterdeck.policy.needs import Need, NeedKind, Request
from quarterdeck.policy.overlap import names_overlap
from quarterdeck.policy.paths import PathPattern
from quarterdeck.policy.trees import Tree

_WILD = re.compile(r"[*?\[{]")


def key_of(pattern: PathPattern | None) -> str | None:
    """A name that every path has which the pattern matches; None if there is no such name.

    With `*` at its start or its end, it is the rest of a name.
    """
    if pattern is None:
        return None
    plain = [name for name in pattern.names if not _WILD.search(name)]
    if plain:
        # The longest is the rarest: a path has `etc` more often than `sudoers`.
        return max(plain, key=len).casefold()
    for name in pattern.names:
        pieces = re.split(r"[*?]+", name)
        if "[" not in name and pieces[-1]:
            return f"*{pieces[-1]}".casefold()
        if "[" not in name and pieces[0]:
            return f"{pieces[0]}*".casefold()
    return None


class PathNames(Value):
    """The names in all paths of a request."""

    plain: frozenset[str]
    wild: frozenset[tuple[str, bool]]
    """Names with wildcards, and whether they find names that begin with a dot."""
    trees: tuple[Tree, ...] = ()
    """What is below the folders among them that are used with all that is below them."""

    def may_have(self, key: str | None) -> bool:
        """Whether a pattern with this key may match one of the paths."""
        if key is None or key in self.plain:
            return True
        if key[0] == "*" and any(map(methodcaller("endswith", key[1:]), self.plain)):
            return True
        if key[-1] == "*" and any(map(methodcaller("startswith", key[:-1]), self.plain)):
            return True
        return any(names_overlap(key, name, hidden) for name, hidden in self.wild)


def names_in(request: Request, folders: Folders, *, look: bool) -> PathNames | None:
    """The names in a request; None if they are not all known. `look`: below folders, too."""
    plain: set[str] = set()
    wild: set[tuple[str, bool]] = set()
    trees: list[Tree] = []
    for need in request.needs:
        if need.target is None:
            continue
        if not need.target.paths:
            return None
        if need.target.deep:
            found = _trees_of(need, folders) if look else None
            if found is None:
                return None
            trees += found
        for name in _names(need):
            if "**" in name:
                return None
            if need.target.glob and _WILD.search(name):
                wild.add((name.casefold(), need.target.hidden))
            else:
                plain.add(name.casefold())
    return PathNames(plain=frozenset(plain), wild=frozenset(wild), trees=tuple(trees))


def _trees_of(need: Need, folders: Folders) -> list[Tree] | None:
    """What is below the paths of a need; None if that does not say which patterns can match."""
    target, below = need.target, folders.below
    bases = (folders.cwd, folders.home, folders.settings)
    if target is None or target.glob or target.names or below is None or None in bases:
        return None
    found: list[Tree] = []
    for path in target.paths:
        if not path.startswith("/") or path == "/" or _WILD.search(path):
            return None
        # With a folder that patterns are relative to, all that they mean is changed.
        if need.kind is NeedKind.EDIT and any(f"{base}/".startswith(f"{path}/") for base in bases):
            return None
        tree = below(path)
        if tree is None:
            return None
        found.append(tree)
    return found


def _names(need: Need) -> Iterable[str]:
    paths = need.target.paths if need.target is not None else ()
    return (name for path in paths for name in path.split("/"))
