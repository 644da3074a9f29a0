"""Full-text search: texts, queries and results.

Pure. `sqlite.search` keeps the index. The journal does not know what a line of the CLI means, so
the creator of an index passes a function that gives the texts of an event.

A query is plain words, all of which must match. `"two words"` is a phrase, `deploy*` a prefix,
`-draft` excludes a word. Every other character separates words, so no query is a syntax error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.search import (
    LONGEST_QUERY,
    Snippet,
    TextKind,
)
from quarterdeck.protocol.stored_events import Stored

MOST_WORDS = 32
"""Longer queries are refused."""


class Text(Value):
    """A text of an event that can be searched."""

    kind: TextKind
    text: str
    tool: str | None = None
    """The tool that is called, for a tool's call."""
    at: int | None = None
    """The time of the text, if it differs from the time of storage."""


Extract = Callable[[Stored], tuple[Text, ...]]
"""Gives the texts of an event. It must not raise."""


_PARTS = re.compile(r'(?P<not>-?)(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')
_WORD = re.compile(r"[^\W_]+")


def match_of(words: str) -> str:
    """A query in the syntax of FTS5, always valid. Raises `UsageError`."""
    if len(words) > LONGEST_QUERY:
        raise UsageError(f"the query is too long: {LONGEST_QUERY} characters are the most")
    wanted: list[str] = []
    unwanted: list[str] = []
    for part in _PARTS.finditer(words):
        text = part["word"] if part["phrase"] is None else part["phrase"]
        tokens = _WORD.findall(text)
        if not tokens:
            continue
        beginning = "*" if part["phrase"] is None and text.endswith("*") else ""
        quoted = f'"{" ".join(tokens)}"{beginning}'
        (unwanted if part["not"] else wanted).append(quoted)
    if not wanted:
        raise UsageError("the query has no word to look for")
    if len(wanted) + len(unwanted) > MOST_WORDS:
        raise UsageError(f"the query has too many words: {MOST_WORDS} are the most")
    found = " AND ".join(wanted)
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def snippet_of(marked: str, begin: str, end: str) -> Snippet:
    """Convert a text with marks around its matches to plain text and ranges."""
    text: list[str] = []
    ranges: list[tuple[int, int]] = []
    length = start = 0
    for part in re.split(f"([{begin}{end}])", marked):
        if part == begin:
            start = length
        elif part == end:
            ranges.append((start, length))
        else:
            text.append(part)
            length += len(part)
    return Snippet(text="".join(text), ranges=tuple(ranges))
