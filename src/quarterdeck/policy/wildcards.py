"""Patterns with wildcards, matched in linear time.

Owns the comparison of texts with patterns. Patterns come from rules, grants and clients, and texts
from agents: neither may choose how long the other takes. So a `*` is never a `.*` that a regular
expression could backtrack into. A pattern is split at its wildcards, and the pieces are searched
from left to right: the first match of a piece leaves the most text for the pieces after it, so no
piece is searched again. Regular expressions of this package do the same with atomic groups.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value

MOST_WILDCARDS = 32
"""Wildcards of one pattern. People write one to four."""

LONGEST = 4096
"""Characters of a pattern that has wildcards: as many as a path may have."""


class Glob(Value):
    """A pattern in which each `*` matches any characters, or none."""

    pieces: tuple[str, ...]
    """The text before, between and after the wildcards."""

    @classmethod
    def of(cls, pattern: str) -> Glob:
        """Read a pattern. Only `*` is special in it."""
        return cls(pieces=tuple(pattern.split("*")))

    def matches(self, text: str) -> bool:
        """Whether the pattern means the whole text."""
        first, *others = self.pieces
        if not others:
            return text == first
        *middle, last = others
        end = len(text) - len(last)
        if not text.startswith(first) or not text.endswith(last) or end < len(first):
            return False
        at = len(first)
        for piece in middle:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True


def too_wild(pattern: str, signs: str = "*") -> str | None:
    """Why a pattern is refused: it has too many wildcards, or is too long for one that has any."""
    count = sum(pattern.count(sign) for sign in signs)
    if count > MOST_WILDCARDS:
        return f"it has {count} wildcards; a pattern may have {MOST_WILDCARDS}"
    if count and len(pattern) > LONGEST:
        return f"it has {len(pattern)} characters; a pattern with wildcards may have {LONGEST}"
    return None


def fits(pattern: str, host: str) -> bool:
    """Does a host match a pattern? `*.example.com` matches its subdomains, not itself."""
    pattern = pattern.lower().rstrip(".")
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    if "*" in pattern:
        # A `*` stays within its label.
        wanted, labels = pattern.split("."), host.split(".")
        return len(wanted) == len(labels) and all(
            Glob.of(each).matches(label) for each, label in zip(wanted, labels, strict=True)
        )
    return host == pattern
