"""Is git used in the session's own repository?

The settings of a repository run programs: a pager, a file system monitor, hooks. Those of the
session's own are protected files, but a folder below may be another repository, or become one by
files that an agent may write. So git is only known in the project's folder, and in folders below it
that are no repositories, as far as the caller can look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell import EffectKind, Script, Target

_NAMES = frozenset({".git", "HEAD", "config", "commondir", "objects", "refs"})
"""Names that make a folder a repository."""


class Looking(Value):
    """How to look at the machine of a session, as far as that is possible."""

    root: str | None = None
    """The folder of the project."""

    resolve: Callable[[str], str] | None = None
    exists: Callable[[str], bool] | None = None


def repositories_in(script: Script) -> list[Target]:
    """The folders that git works in."""
    return [
        each.target
        for part in script.parts
        for each in part.effects
        if each.target is not None and each.target.repository
    ]


def other_repositories(script: Script, used: list[Target], look: Looking) -> Iterator[Target]:
    """Those of the folders in which git may meet another repository than the session's."""
    written = [target for part in script.parts for target in part.writes]
    written += [
        each.target
        for part in script.parts
        for each in part.effects
        if each.kind is EffectKind.WRITES and each.target is not None
    ]
    for target in used:
        # A `..` behind a link leads elsewhere: then the text of a path says nothing.
        known = target.sure and target.paths
        if not known or not all(
            path == (look.root or "") or _is_plain(path, written, look) for path in target.paths
        ):
            yield target


def _is_plain(path: str, written: list[Target], look: Looking) -> bool:
    """Whether a folder is below the project's, and no repository in between."""
    if look.root is None or look.resolve is None or look.exists is None:
        return False
    true, top = look.resolve(path), look.resolve(look.root)
    if not path.startswith("/") or not f"{true}/".startswith(f"{top}/"):
        return False
    if any(_may_make(each, path) for each in written):
        return False
    while true != top:
        found = {name for name in _NAMES if look.exists(f"{true}/{name}")}
        if ".git" in found or {"HEAD", "objects"} <= found or {"HEAD", "commondir"} <= found:
            return False
        true = true.rpartition("/")[0]
    return True


def _may_make(written: Target, folder: str) -> bool:
    """May a command that writes this make the folder, or one above it, a repository?"""
    if not written.paths or written.glob:
        return True
    for path in written.paths:
        above, _, name = path.rpartition("/")
        if f"{folder}/".startswith(f"{path}/"):
            return True
        if name in _NAMES and f"{folder}/".startswith(f"{above}/"):
            return True
        if written.deep and path.startswith(f"{folder}/"):
            return True
    return False
