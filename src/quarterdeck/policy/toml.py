"""A policy file as TOML: its data and the line of each key, within bounds of size and depth.

It does not know what the keys mean.
"""

from __future__ import annotations

import re
import tomllib

from quarterdeck.domain.structs import Value
from quarterdeck.domain.toml_lines import Path, key_lines

LIMIT = 250_000
"""Characters of a file that is read. A policy for a large team has some ten thousand."""

DEPTH = 16
"""Levels of a dotted key, and of arrays and tables within each other. A policy has four. The
standard library takes time that grows with the square of the first, and recurses for the second."""

_TEXTS = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"(?!""))*)(?:"""|\Z)'
    r"|'''(?>(?:[^']|'(?!''))*)(?:'''|\Z)"
    r'|"(?>(?:[^"\\\n]|\\[^\n])*)"?'
    r"|'(?>[^'\n]*)'?"
    r"|#[^\n]*",
    re.DOTALL,
)
"""Strings and comments, also those that do not end. Atomic, so that each is read once."""

_BOM = "\ufeff"
_NESTING = re.compile(r"[\[\]{}]")
_DOTTED = re.compile(rf"\.(?:[^.=,\n\[\]{{}}]*\.){{{DEPTH - 1}}}")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_AT_END = re.compile(r" \(at end of document\)$")


class Flaw(Value):
    """A problem in a file, with its line."""

    line: int
    text: str

    def __str__(self) -> str:
        """As it is shown."""
        return f"line {self.line}: {self.text}"


class Document:
    """A file that was read: its data, and the lines of its keys."""

    def __init__(self, data: dict[str, object], lines: dict[Path, int]) -> None:
        self.data = data
        self._lines = lines

    def line(self, *path: str | int) -> int:
        """The line of a place, or of the nearest one around it."""
        here: Path = path
        while here and here not in self._lines:
            here = here[:-1]
        return self._lines.get(here, 1)


def read_toml(text: str) -> Document | Flaw:
    """Read a file. Text that is not valid TOML gives the first flaw, with its line."""
    if len(text) > LIMIT:
        return Flaw(line=1, text=f"the file has more than {LIMIT:,} characters")
    if text.startswith(_BOM):
        return Flaw(line=1, text="it begins with a byte order mark (BOM): save it as UTF-8 without")
    if (flaw := _too_deep(text)) is not None:
        return flaw
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return _flaw(error, text)
    return Document(data, key_lines(text))


def _too_deep(text: str) -> Flaw | None:
    """A flaw for text that is nested too deep, in a dotted key or in brackets."""
    bare = _TEXTS.sub(lambda found: "\n" * found.group().count("\n"), text)
    if found := _DOTTED.search(bare):
        line = bare.count("\n", 0, found.start()) + 1
        return Flaw(line=line, text=f"this key has more than {DEPTH} levels")
    depth = 0
    for bracket in _NESTING.finditer(bare):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > DEPTH:
            line = bare.count("\n", 0, bracket.start()) + 1
            return Flaw(line=line, text=f"this is nested more than {DEPTH} levels deep")
    return None


def _flaw(error: Exception, text: str) -> Flaw:
    said = str(error)
    line = text.count("\n", 0, len(text.rstrip())) + 1
    if found := _AT_LINE.search(said):
        line = int(found[1])
    said = _AT_END.sub("", _AT_LINE.sub("", said))
    return Flaw(line=line, text=f"this is not TOML: {said[:1].lower()}{said[1:]}")
