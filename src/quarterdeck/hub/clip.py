"""Texts, ids and counts of a CLI within their limits. Pure.

Owns the limits of what a session's view keeps of a CLI's words: a hostile CLI cannot make the view
grow without limit. A text that is cut ends in «…».
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from quarterdeck.wire.tools import one_line

NAME = 100
"""Characters of a name, a status or a type."""
TEXT = 200
"""Characters of a description, a title or an error."""
LONGEST_ID = 200
"""Characters of an id. A longer one is ignored: a part of an id is no id."""
_MOST = 2**53

_Item = TypeVar("_Item")


def name_of(text: object) -> str:
    """A name in one line; empty for what is no text."""
    return _clip(text, NAME)


def text_of(text: object) -> str:
    """A text in one line; empty for what is no text."""
    return _clip(text, TEXT)


def id_of(id_: str | None) -> str | None:
    """An id that can be kept, or None."""
    return id_ if id_ and len(id_) <= LONGEST_ID else None


def count_of(number: float) -> int:
    """A count from 0 that every reader of JSON can hold."""
    return int(min(max(number, 0), _MOST))


def first(items: Iterable[_Item], most: int) -> tuple[tuple[_Item, ...], int]:
    """The first of them, and how many are left out."""
    found = tuple(items)
    return found[:most], max(0, len(found) - most)


def _clip(text: object, limit: int) -> str:
    # A text of megabytes is not read whole for the line that is kept of it.
    return one_line(text[: 4 * limit], limit) if isinstance(text, str) else ""
