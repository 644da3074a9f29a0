"""Full-text search: queries and results. `journal.search` tells what a query means."""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value

LONGEST_QUERY = 1000


MOST_HITS = 200


class TextKind(StrEnum):
    """The kind of a text."""

    PROMPT = "prompt"
    ANSWER = "answer"
    TOOL = "tool"


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
