"""Full-text search: texts, queries and results.

Pure. `sqlite.search` keeps the index. The journal does not know what a line of the CLI means, so
the creator of an index passes a function that gives the texts of an event.

A query is plain words, all of which must match. `"two words"` is a phrase, `deploy*` a prefix,
`-draft` excludes a word. Every other character separates words, so no query is a syntax error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.journal.stored import Stored

LONGEST_QUERY = 1000
MOST_WORDS = 32
"""Longer queries are refused."""

MOST_HITS = 200
LOCAL = "local"
"""The name of the machine that the hub itself is on."""


class TextKind(StrEnum):
    """The kind of a text."""

    PROMPT = "prompt"
    ANSWER = "answer"
    TOOL = "tool"


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


class Search(Value):
    """A search. Missing members do not restrict it."""

    words: str
    session: str | None = None
    project: str | None = None
    """The name of a project, or the absolute path of a folder, with all below it."""
    machine: str | None = None
    tool: str | None = None
    kind: TextKind | None = None
    since: int | None = None
    until: int | None = None
    """In ms since 1970; `since` is included, `until` is not."""
    before: int | None = None
    """The `next` of the page before."""
    limit: int = 20


class Snippet(Value, omit_defaults=False):
    """A piece of the text around the matches. Plain text: nothing in it is markup.

    `ranges` are the matches, as pairs of first and last-plus-one, counted in characters (code
    points of Unicode, not in units of UTF-16).
    """

    text: str
    ranges: tuple[tuple[int, int], ...]


class Hit(Value, omit_defaults=False):
    """A text that was found, in the event `seq` of its session."""

    session: str
    seq: int
    at: int
    kind: TextKind
    snippet: Snippet
    tool: str | None
    name: str
    project: str | None
    machine: str
    directory: str


class Hits(Value, omit_defaults=False):
    """A page of results, newest first. `next` is the `before` of the following page."""

    hits: tuple[Hit, ...]
    next: int | None
    behind: int
    """How many of the newest events are not in the index yet."""


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
