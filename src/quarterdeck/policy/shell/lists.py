"""Long lists of names, written as text: they are read more often than they are changed."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())
