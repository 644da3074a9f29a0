"""How a shell command was read, for people: its tokens, and what is not known before it runs.

`shell` reads commands to decide about them. This module lists what it read, in the order of the
text, so that a person can see where a command and its reading differ from what was meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.domain.structs import Value
from quarterdeck.policy.needs import NeedKind, Request
from quarterdeck.policy.shell import LIMIT, Part, Script, Word
from quarterdeck.policy.shell.strict import read_strictly
from quarterdeck.policy.shell.tokens import Kind

_LISTED = frozenset(set(Kind) - {Kind.BLANK, Kind.END})
_EXPANDS = frozenset("$`")
AT_RUN_TIME = "its value is known only when it runs"
WHICH_FILE = "it is not known which file that is"
MORE_WORDS = "more words are added when it runs"


class ShownToken(Value, omit_defaults=False):
    """A piece of a command, as bash would read it."""

    kind: str
    """`word`, `operator`, `redirection`, `newline`, `comment`, `document` (the lines of a
    here-document), or `rest` (not read)."""
    text: str
    """As it was typed."""
    start: int
    """Its first character in the command, from 0."""
    value: str | None = None
    """For a word: the argument that a command gets. None if that is known only when it runs."""


class Unknown(Value, omit_defaults=False):
    """Something that is not known before a call runs."""

    what: str
    why: str
    start: int | None = None
    """Its place in the command, in characters; None if it is about the whole call."""
    end: int | None = None


def tokens_of(script: Script) -> tuple[ShownToken, ...]:
    """The tokens of a command, without the blanks between them. Only its beginning is listed if it
    is longer than what is read.
    """
    data = script.source[:LIMIT].encode(errors="surrogatepass")
    values = _values(script)
    found: list[ShownToken] = []
    at = characters = 0
    for token in read_strictly(data.decode("latin-1")).tokens:
        # The reader counts bytes, and people count characters.
        characters += len(data[at : token.start].decode(errors="replace"))
        at = token.start
        if token.kind not in _LISTED or token.start == token.end:
            continue
        text = data[token.start : token.end].decode(errors="replace")
        value = _value(text, values) if token.kind is Kind.WORD else None
        found.append(ShownToken(kind=token.kind.value, text=text, start=characters, value=value))
    return tuple(found)


def _value(word: str, values: dict[str, str | None]) -> str | None:
    if word in values:
        return values[word]
    # A keyword, a name, or the file of a redirection.
    return None if _EXPANDS & set(word) else word


def _values(script: Script) -> dict[str, str | None]:
    """What each word becomes, by the word as it was typed."""
    found: dict[str, str | None] = {}
    for part in script.parts:
        for word in (*part.words, *(each.value for each in part.assignments)):
            found[word.source] = None if word.glob else word.text
    return found


def unknown_in(request: Request) -> tuple[Unknown, ...]:
    """What is not known about a call before it runs, in the order of the text."""
    found: dict[str | int, Unknown] = {}
    for each in _each_unknown(request):
        # Several reasons at one place are one thing that is not known: the first says most.
        found.setdefault(each.what if each.start is None else each.start, each)
    return tuple(sorted(found.values(), key=lambda each: -1 if each.start is None else each.start))


def _each_unknown(request: Request) -> Iterator[Unknown]:
    script = request.script
    if script is None:
        for need in request.needs:
            if need.kind is NeedKind.UNKNOWN:
                yield Unknown(what=need.what, why=need.why)
    else:
        for problem in script.problems:
            start, end = problem.span
            what = problem.source or script.source
            yield Unknown(what=what, why=problem.why, start=start, end=end)
        for part in script.parts:
            yield from _in_part(part, script.source)
    named = {word.source for part in (script.parts if script else ()) for word in part.words}
    for need in request.needs:
        if need.target is None or need.target.paths or need.what in named:
            continue
        if need.part is None or not need.part.open_ended:
            yield Unknown(what=need.what, why=f"{WHICH_FILE} ({need.why})")


def _in_part(part: Part, source: str) -> Iterator[Unknown]:
    first, last = part.span
    at = first
    for word in part.words:
        found = source.find(word.source, at, last)
        if found >= 0:
            at = found
        if _is_unknown(word):
            end = found + len(word.source)
            place = (found, end) if found >= 0 else part.span
            yield Unknown(what=word.source, why=AT_RUN_TIME, start=place[0], end=place[1])
    if part.open_ended:
        yield Unknown(what=part.text, why=MORE_WORDS, start=first, end=last)


def _is_unknown(word: Word) -> bool:
    return word.text is None and not word.texts
