"""The line of each key in a TOML text.

The standard library parses values but does not report lines, so the lines come from tree-sitter's
grammar. `config` and `policy` use them to name the line of a problem.
"""

from __future__ import annotations

import tomllib

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

Path = tuple[str | int, ...]
"""A place in the data: names, and numbers for the elements of arrays. `("rule", 2, "verdict")`."""

_LANGUAGE = Language(tree_sitter_toml.language())
_KEYS = frozenset({"bare_key", "quoted_key", "dotted_key"})


def key_lines(text: str) -> dict[Path, int]:
    """The line, counted from 1, of each key, table and array element of a valid TOML text."""
    walk = _Walk()
    for node in Parser(_LANGUAGE).parse(text.encode()).root_node.named_children:
        walk.top_level(node)
    return walk.lines


class _Walk:
    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self._last: dict[Path, int] = {}
        """For each array of tables, the number of its last element so far."""

    def top_level(self, node: Node) -> None:
        match node.type:
            case "pair":
                self._pair(node, ())
            case "table":
                self._table(node, self._resolve(_key(node)))
            case "table_array_element":
                array: Path = (*self._resolve(_key(node)[:-1]), *_key(node)[-1:])
                self.lines.setdefault(array, _line(node))
                self._last[array] = self._last.get(array, -1) + 1
                self._table(node, (*array, self._last[array]))
            case _:
                pass

    def _resolve(self, key: tuple[str, ...]) -> Path:
        """A table's path. A name of an array of tables means its last element."""
        path: Path = ()
        for name in key:
            path = (*path, name)
            if path in self._last:
                path = (*path, self._last[path])
        return path

    def _table(self, node: Node, path: Path) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], _line(node))
        for pair in node.named_children:
            if pair.type == "pair":
                self._pair(pair, path)

    def _pair(self, node: Node, around: Path) -> None:
        path: Path = (*around, *_key(node))
        for length in range(len(around) + 1, len(path) + 1):
            self.lines.setdefault(path[:length], _line(node))
        self._value(node.named_children[-1], path)

    def _value(self, node: Node, path: Path) -> None:
        if node.type == "inline_table":
            for inner in node.named_children:
                if inner.type == "pair":
                    self._pair(inner, path)
        elif node.type == "array":
            elements = [each for each in node.named_children if each.type != "comment"]
            for number, element in enumerate(elements):
                self.lines.setdefault((*path, number), _line(element))
                self._value(element, (*path, number))


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _key(node: Node) -> tuple[str, ...]:
    """The names of the key of a pair or a table."""
    key = next((child for child in node.named_children if child.type in _KEYS), None)
    return () if key is None else _names(key)


def _names(node: Node) -> tuple[str, ...]:
    if node.type == "dotted_key":
        return tuple(name for child in node.named_children for name in _names(child))
    text = (node.text or b"").decode()
    if node.type == "quoted_key":
        return tuple(tomllib.loads(f"{text} = 0"))
    return (text,)
