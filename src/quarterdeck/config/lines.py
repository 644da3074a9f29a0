"""On which line of a TOML file each key stands.

The values come from the standard library's parser, which knows no lines; the lines come from the
grammar. A key is its path: names, and numbers for the elements of arrays of tables. Below `read`.
"""

from __future__ import annotations

import tomllib

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

Key = tuple[str | int, ...]

_language = Language(tree_sitter_toml.language())


def lines_of(text: str) -> dict[Key, int]:
    """The line of each key and each table, from 1."""
    walk = _Walk()
    walk.document(Parser(_language).parse(text.encode()).root_node)
    return walk.lines


class _Walk:
    def __init__(self) -> None:
        self.lines: dict[Key, int] = {}
        self._last: dict[Key, int] = {}
        """Of each array of tables: the number of the element that is being written."""

    def document(self, root: Node) -> None:
        for node in root.named_children:
            match node.type:
                case "pair":
                    self._pair(node, ())
                case "table":
                    self._table(node, self._place(_key(node)))
                case "table_array_element":
                    at = self._place(_key(node)[:-1]) + _key(node)[-1:]
                    self.lines.setdefault(at, _line(node))
                    self._last[at] = self._last.get(at, -1) + 1
                    self._table(node, (*at, self._last[at]))

    def _place(self, key: tuple[str, ...]) -> Key:
        """A table's path; a name of an array of tables means its last element."""
        at: Key = ()
        for name in key:
            at = (*at, name)
            if at in self._last:
                at = (*at, self._last[at])
        return at

    def _table(self, node: Node, at: Key) -> None:
        for length in range(1, len(at) + 1):
            self.lines.setdefault(at[:length], _line(node))
        for pair in node.named_children:
            if pair.type == "pair":
                self._pair(pair, at)

    def _pair(self, node: Node, at: Key) -> None:
        key: Key = (*at, *_key(node))
        for length in range(len(at) + 1, len(key) + 1):
            self.lines.setdefault(key[:length], _line(node))
        value = node.named_children[-1]
        if value.type == "inline_table":
            for inner in value.named_children:
                if inner.type == "pair":
                    self._pair(inner, key)
        elif value.type == "array":
            tables = [each for each in value.named_children if each.type == "inline_table"]
            for number, table in enumerate(tables):
                self.lines.setdefault((*key, number), _line(table))
                for inner in table.named_children:
                    if inner.type == "pair":
                        self._pair(inner, (*key, number))


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _key(node: Node) -> tuple[str, ...]:
    """The names of a pair's or a table's key."""
    for child in node.named_children:
        if child.type in {"bare_key", "quoted_key", "dotted_key"}:
            return _names(child)
    return ()


def _names(node: Node) -> tuple[str, ...]:
    if node.type == "dotted_key":
        return tuple(name for child in node.named_children for name in _names(child))
    text = (node.text or b"").decode()
    if node.type == "quoted_key":
        return tuple(tomllib.loads(f"{text} = 0"))
    return (text,)
