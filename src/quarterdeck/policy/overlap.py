"""May a path that is only known as a pattern be one that a rule means?

Both are patterns: a rule's, in the way of gitignore, and the one of a command or of a search. The
question is whether one path can fit both. Where that would take long to work out, it may.
"""

from __future__ import annotations

import re
from functools import lru_cache

LARGEST = 4_096
"""Steps for one comparison. More than these, and the patterns are taken to overlap."""

_CLASS = re.compile(r"\[[!^]?\]?[^\]/]*\]")
_WILD = re.compile(r"[*?\[]")

Piece = str
"""One character, or `*`, `?`, or `[…]`, which may be any character."""


def overlap(rule: list[str], reach: list[str], *, hidden: bool, last: bool | None = None) -> bool:
    """Whether a path may fit both. `**` is any number of names; a rule means all below it, too.

    `hidden`: wildcards of `reach` find names that begin with a dot, which a shell's do not. `last`:
    whether its last name does, if that is different.
    """
    if len(rule) * len(reach) > LARGEST:
        return True
    # Where the names of `rule` up to `at` may have been used up by those of `reach` so far.
    positions = _skip(rule, {0})
    for place, name in enumerate(reach):
        if len(rule) in positions:
            return True
        if last is not None and place == len(reach) - 1 and name != "**":
            hidden = last
        if name == "**":
            # Any names: the rest of the rule may be among them.
            positions = {
                at for start in positions for at in range(start, _last(rule, start, hidden))
            }
            continue
        moved: set[int] = set()
        for at in positions:
            if rule[at] == "**":
                moved.add(at)
            elif names_overlap(rule[at], name, hidden):
                moved.add(at + 1)
        positions = _skip(rule, moved)
    return len(rule) in positions


def _skip(rule: list[str], positions: set[int]) -> set[int]:
    """The same positions, and those after each `**`, which may match no name."""
    found = set(positions)
    for at in positions:
        following = at
        while following < len(rule) and rule[following] == "**":
            following += 1
            found.add(following)
    return found


def _last(rule: list[str], start: int, hidden: bool) -> int:
    """How far any number of names may lead: a shell's `**` finds no name with a dot."""
    for at in range(start, len(rule)):
        if not hidden and rule[at].startswith("."):
            return at + 1
    return len(rule) + 1


@lru_cache(maxsize=4_096)
def names_overlap(rule: str, name: str, hidden: bool) -> bool:
    """Whether one name may fit both patterns."""
    if not _WILD.search(name) and not _WILD.search(rule):
        return rule == name
    if not hidden and name[:1] in {"*", "?", "["} and rule.startswith("."):
        return False
    one, other = _pieces(rule), _pieces(name)
    if len(one) * len(other) > LARGEST:
        return True
    # How far `one` may have come when `other` has come to each of its pieces.
    positions = _stars(one, {0})
    for piece in other:
        if piece == "*":
            positions = set(range(min(positions), len(one) + 1)) if positions else positions
            continue
        moved: set[int] = set()
        for at in positions:
            if at < len(one) and one[at] == "*":
                moved.add(at)
            elif at < len(one) and _fits(one[at], piece):
                moved.add(at + 1)
        positions = _stars(one, moved)
    return len(one) in positions


def _stars(pieces: list[Piece], positions: set[int]) -> set[int]:
    found = set(positions)
    for at in positions:
        following = at
        while following < len(pieces) and pieces[following] == "*":
            following += 1
            found.add(following)
    return found


def _fits(one: Piece, other: Piece) -> bool:
    # The characters of a class are not expanded: it may match any character.
    return one == other or len(one) > 1 or len(other) > 1 or "?" in {one, other}


def _pieces(name: str) -> list[Piece]:
    found: list[Piece] = []
    at = 0
    while at < len(name):
        set_ = _CLASS.match(name, at) if name[at] == "[" else None
        piece = set_[0] if set_ is not None else name[at]
        if piece != "*" or not found or found[-1] != "*":
            found.append(piece)
        at += len(piece)
    return found
