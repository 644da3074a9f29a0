"""The reach of a search: the files below a folder, narrowed by its `glob` and `type`.

Rules that stop are compared with that reach. A search without a glob reads every file, and may find
files with secrets; it is unknown whether it does.
"""

from __future__ import annotations

import re

from quarterdeck.policy.shell import Target
from quarterdeck.policy.shell.listings import TYPES
from quarterdeck.policy.shell.word_reader import read_word

MOST_GLOBS = 32
LONGEST = 1_024
"""Characters of a glob that is read."""

SOURCES = frozenset(glob for globs in TYPES.values() for glob in globs) | {
    "*.md",
    "*.rst",
    "*.txt",
}
"""They find files of programs and texts. That one is called `.env.ts` is not to be expected, and to
ask about every search for it would be one question too many."""

_APART = re.compile(r"[\s,]+")
_EXCEPT = re.compile(r"[\s,{]!")


def reach_of(folder: Target, glob: str | None, kind: str | None) -> Target:
    """All that a search in a folder (or a file) may read, as patterns."""
    narrowed = _globs(glob or "")
    if narrowed is None:
        narrowed = TYPES.get(kind or "")
    source = ", ".join(narrowed) if narrowed else f"{folder.source} and all below"
    if not folder.paths:
        return Target(source=source)
    paths = tuple(
        f"{path.rstrip('/')}/**/{each}".rstrip("/")
        for path in folder.paths
        for each in narrowed or ("",)
    )
    return Target(source=source, paths=paths, glob=True, hidden=True, sure=False)


def _globs(text: str) -> tuple[str, ...] | None:
    """The globs that files must fit; None where they may be any."""
    # A character after a backslash may be taken for a wildcard: that widens the reach, which is
    # safe.
    if len(text) > LONGEST:
        return None
    text = text.replace("\\", "").strip()
    if not text or text.startswith("!") or _EXCEPT.search(text):
        return None
    if "{" in text:
        made = read_word(text).texts
        return None if not made or any(map(_APART.search, made)) else made
    globs = tuple(each.strip("/") for each in _APART.split(text))
    return globs if all(globs) and len(globs) <= MOST_GLOBS else None
