"""Arithmetic and comparisons of numbers: `$((…))`, `((…))`, `for ((…))`, `[[ a -eq b ]]`.

Bash evaluates the values of variables in them again, and an index in such a value may substitute a
command. So arithmetic is harmless only where every variable in it is certainly a number.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from quarterdeck.policy.shell.pieces import Pieces
from quarterdeck.policy.shell.strict import TEST
from quarterdeck.policy.shell.variables import NUMBERS, counts, names_in

_VALUE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")

_OPERAND = re.compile(
    r"([A-Za-z_]\w*)?[\"']?\s-(?:eq|ne|lt|le|gt|ge)\s+[\"']?[+-]?(?:([A-Za-z_]\w*))?"
)

_HEADER = re.compile(r"for\s*\(\(([^;()]*);[^;()]*;[^;()]*\)\)\s*;?\s*")

_SETS_FIRST = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)")

_COMPARES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s")

_INDEXED = re.compile(r"\$|\[\w*\[|(?<!\w)(?=[\d_]*[A-Za-z])\w*\[")
"""A variable's value, or the index of an array. Each run of letters is looked at once."""

_SUM = re.compile(r"[\w\s$(){}+*/%<>=!&|^~?:,;-]*", re.ASCII)

_NOT_NAMED = re.compile(r"\$\(|\$\{?[0-9@*]|\$\{\w*[^\w}]")
"""What arithmetic may not hold: substitutions, the arguments of a function, further expansions."""

_DIGITS = re.compile(r"[0-9\s+*/%()<>=!&|^~?:,-]*")

MOVES = re.compile(r"\b(?:cd|pushd|popd|chdir)\b")
"""Commands that change the working directory."""


class Arithmetic(Pieces):
    """The part of a reader that knows numbers."""

    def _arithmetic(self, node: Node) -> None:
        text = self._text(node)
        if not _DIGITS.fullmatch(text.strip("$[]()")):
            self._evaluates(node, text)
        self._inside(node)

    def _evaluates(self, node: Node, text: str) -> None:
        """Arithmetic runs what the values of its variables say: they must be numbers."""
        inner = text.removeprefix("$")
        if not _SUM.fullmatch(inner) or _NOT_NAMED.search(inner):
            self._doubt(node, "arithmetic evaluates the values of variables")
            return
        for name in names_in(inner):
            if not self._is_number(name):
                self._doubt(node, f"arithmetic evaluates the value of {name}, which is not known")
                return

    def _is_number(self, name: str) -> bool:
        """Is a variable certainly a number here, or one that the agent has not set?"""
        if self._variables.is_set(name) or self._level:
            return self._variables.is_number(name) and name in self._here.given
        return True

    def test(self, node: Node) -> None:
        """`[[ … ]]` and `[ … ]`: only substitutions in it run."""
        text = self._text(node)
        self._mark_words(TEST, [node])
        if _COMPARES.search(text) and not self._compares_numbers(node, text):
            self._doubt(node, "it evaluates the values of variables")
        self._inside(node)

    def _compares_numbers(self, node: Node, text: str) -> bool:
        """Are all values that a comparison of numbers evaluates certainly numbers?"""
        if "`" in text:
            return False
        left = text.encode()
        for inner in reversed(_substitutions(node)):
            if not counts(inner, self._text):
                return False
            start, end = inner.start_byte - node.start_byte, inner.end_byte - node.start_byte
            left = left[:start] + b"0" + left[end:]
        plain = left.decode(errors="replace")
        for found in _VALUE.finditer(plain):
            if not self._is_number(found[1] or found[2]):
                return False
        plain = _VALUE.sub("0", NUMBERS.sub("0", plain)).strip("[]")
        if _INDEXED.search(plain):
            return False
        # A plain word is the name of a variable where a number is wanted.
        return all(
            self._is_number(found[1] or found[2])
            for found in _OPERAND.finditer(plain)
            if found[1] or found[2]
        )

    def for_numbers(self, node: Node) -> None:
        """`for ((i=0; i<9; i++))`: its first part is always run."""
        body = node.child_by_field_name("body")
        end = body.start_byte if body is not None else node.end_byte
        header = self._bytes[node.start_byte : end].decode("utf-8", "replace")
        found = _HEADER.fullmatch(header)
        if found is None:
            self._doubt(node, "arithmetic evaluates the values of variables")
        else:
            self._here = self._loose = self._here.with_variables(_SETS_FIRST.findall(found[1]))
            self._evaluates(node, found[0].removeprefix("for").rstrip("; \n\t"))
        if body is None:
            return
        here = self._here
        if MOVES.search(self._text(node)):
            self._here = self._loose = here.elsewhere()
        self._visit(body)
        self._here = self._loose = self._loose.union(here)


def _substitutions(node: Node) -> list[Node]:
    """The outermost substitutions in a node, in their order."""
    found: list[Node] = []
    waiting = list(reversed(node.children))
    while waiting:
        child = waiting.pop()
        if child.type == "command_substitution":
            found.append(child)
        else:
            waiting.extend(reversed(child.children))
    return found
