"""Claude Code's own permission rules: `Tool`, and `Tool(specifier)`.

Owns their syntax. What a rule hits is told in `matching`; what many rules make of a call in `parity`.
"""

from __future__ import annotations

import re
from enum import StrEnum

from quarterdeck.domain.structs import Fact


class Source(StrEnum):
    """Where a rule comes from. The CLI's own order of strength, weakest first."""

    USER = "user"
    PROJECT = "project"
    LOCAL = "local"
    FLAG = "flag"
    POLICY = "policy"
    SESSION = "session"


class RuleError(ValueError):
    """A text that is no rule, and why."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"{text!r} is no rule: {why}")
        self.text = text
        self.why = why


class Rule(Fact):
    """A rule as it was written, taken apart."""

    text: str
    tool: str
    specifier: str | None = None
    """None: every call of the tool."""


_SHAPE = re.compile(r"([^()\s]+)(?:\((.*)\))?", re.DOTALL)


def parse_rule(text: str) -> Rule:
    """Read a rule. Raises RuleError for what is none."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise RuleError(text, "it must be Tool or Tool(specifier)")
    tool, specifier = shape.groups()
    if specifier is not None and specifier.strip() in {"", "*"}:
        specifier = None
    return Rule(text=text, tool=tool, specifier=specifier)
