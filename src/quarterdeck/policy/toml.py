"""TOML with its lines: what a file says, and where it says it.

The standard library reads the values and tree-sitter the places: an error in a policy must name its
line. Nothing here knows what the keys mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from quarterdeck.domain.structs import Value

Path = tuple[str | int, ...]
"""A place in the data: `("rule", 2, "verdict")`."""

LIMIT = 250_000
"""Characters of a file that is read. A policy for a large team has some ten thousand."""

DEPTH = 16
"""Levels of a dotted key, and of arrays and tables within each other. A policy has four. The
standard library takes time that grows with the square of the first, and recurses for the second."""

_LANGUAGE = Language(tree_sitter_toml.language())
_TEXTS = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"(?!""))*)(?:"""|\Z)'
    r"|'''(?>(?:[^']|'(?!''))*)(?:'''|\Z)"
    r'|"(?>(?:[^"\\\n]|\\[^\n])*)"?'
    r"|'(?>[^'\n]*)'?"
    r"|#[^\n]*",
    re.DOTALL,
)
"""Strings and comments, also those that do not end. Atomic, so that each is read once."""

_NESTING = re.compile(r"[\[\]{}]")
_DOTTED = re.compile(rf"\.(?:[^.=,\n\[\]{{}}]*\.){{{DEPTH - 1}}}")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_AT_END = re.compile(r" \(at end of document\)$")


class Flaw(Value):
    """What is wrong with a file, and on which line."""

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
    """Read a file. What is no TOML gives the first flaw, with its line."""
    if len(text) > LIMIT:
        return Flaw(line=1, text=f"the file has more than {LIMIT:,} characters")
    if (flaw := _too_deep(text)) is not None:
        return flaw
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return _flaw(error, text)
    parser = Parser(_LANGUAGE)
    return Document(data, dict(_lines(parser.parse(text.encode()).root_node)))


def _too_deep(text: str) -> Flaw | None:
    """What is nested deeper than is read, in a dotted key or in brackets."""
    bare = _TEXTS.sub(lambda found: "\n" * found.group().count("\n"), text)
    if found := _DOTTED.search(bare):
        line = bare.count("\n", 0, found.start()) + 1
        return Flaw(line=line, text=f"this key has more than {DEPTH} levels")
    depth = 0
    for bracket in _NESTING.finditer(bare):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > DEPTH:
            line = bare.count("\n", 0, bracket.start()) + 1
            return Flaw(line=line, text=f"this is nested in more than {DEPTH} levels")
    return None


def _flaw(error: Exception, text: str) -> Flaw:
    said = str(error)
    line = text.count("\n", 0, len(text.rstrip())) + 1
    if found := _AT_LINE.search(said):
        line = int(found[1])
    said = _AT_END.sub("", _AT_LINE.sub("", said))
    return Flaw(line=line, text=f"this is no TOML: {said[:1].lower()}{said[1:]}")


def _lines(root: Node) -> Iterator[tuple[Path, int]]:
    counts: dict[Path, int] = {}
    for node in root.children:
        match node.type:
            case "pair":
                yield from _pair(node, ())
            case "table" | "table_array_element":
                place: Path = _resolved(_keys(node), counts)
                if node.type == "table_array_element":
                    number = counts[place] = counts.get(place, -1) + 1
                    place = (*place, number)
                yield place, node.start_point[0] + 1
                for child in node.children:
                    if child.type == "pair":
                        yield from _pair(child, place)
            case _:
                pass


def _pair(node: Node, around: Path) -> Iterator[tuple[Path, int]]:
    place: Path = (*around, *_keys(node))
    yield place, node.start_point[0] + 1
    yield from _value(node.children[-1], place)


def _value(node: Node, place: Path) -> Iterator[tuple[Path, int]]:
    if node.type == "array":
        for number, child in enumerate(child for child in node.children if _is_value(child)):
            yield (*place, number), child.start_point[0] + 1
            yield from _value(child, (*place, number))
    elif node.type == "inline_table":
        for child in node.children:
            if child.type == "pair":
                yield from _pair(child, place)


def _is_value(node: Node) -> bool:
    return node.is_named and node.type != "comment"


def _resolved(keys: tuple[str, ...], counts: dict[Path, int]) -> Path:
    """A header below an array of tables means its last element: `[rule.rewrite]`."""
    place: Path = ()
    for index, key in enumerate(keys):
        place = (*place, key)
        if place in counts and index < len(keys) - 1:
            place = (*place, counts[place])
    return place


def _keys(node: Node) -> tuple[str, ...]:
    for child in node.children:
        match child.type:
            case "bare_key" | "quoted_key":
                return (_key(child),)
            case "dotted_key":
                return tuple(_parts(child))
            case _:
                pass
    return ()


def _parts(node: Node) -> Iterator[str]:
    for child in node.children:
        if child.type == "dotted_key":
            yield from _parts(child)
        elif child.type in {"bare_key", "quoted_key"}:
            yield _key(child)


def _key(node: Node) -> str:
    text = (node.text or b"").decode(errors="replace")
    return text if node.type == "bare_key" else text[1:-1]
