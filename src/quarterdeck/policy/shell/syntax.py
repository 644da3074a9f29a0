"""The syntax tree of a text, by tree-sitter. `reader` walks it; it is not to be trusted."""

from __future__ import annotations

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_bash.language()))
_ENDS_PLAINLY = re.compile(
    rb"[A-Za-z0-9_./](?:[A-Za-z0-9_ ./:@%+,=~|&;*?^!>-]|'[^'\n]*'|\"[^\"\\$`\n]*\")*"
)
"""One line without substitutions, groups, here-documents, comments and open quotes."""


def syntax_tree(text: bytes) -> Node:
    """The syntax tree of a text.

    The grammar takes ten times as long for a pipeline of three commands that the end of the text
    ends, and not a newline. A newline is added where it cannot change the tree.
    """
    if text.count(b"|") > 1 and _ENDS_PLAINLY.fullmatch(text):
        root = _PARSER.parse(text + b"\n").root_node
        if not root.has_error:
            return root
    return _PARSER.parse(text).root_node
