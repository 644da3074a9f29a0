"""Claude Code's own permission rules: `Tool`, and `Tool(specifier)`.

Owns their syntax: a text becomes a parsed and compiled `Rule`. `matcher` finds what a rule matches,
and `parity` combines many rules.
"""

from __future__ import annotations

import re
from enum import StrEnum

from quarterdeck.domain.structs import Value
from quarterdeck.policy.paths import BadPattern, PathPattern, path_pattern
from quarterdeck.policy.wildcards import Glob, too_wild


class Behavior(StrEnum):
    """The decision on a call."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class Source(StrEnum):
    """Where a rule comes from. The CLI's own order of strength, weakest first."""

    USER = "user"
    PROJECT = "project"
    LOCAL = "local"
    FLAG = "flag"
    POLICY = "policy"
    SESSION = "session"


LONGEST_SHOWN = 200
"""Characters of a text that a message about it repeats."""


class RuleError(ValueError):
    """A text is not a valid rule."""

    def __init__(self, text: str, why: str) -> None:
        shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
        super().__init__(f"{shown!r} is not a rule: {why}")
        self.text = text
        self.why = why


class CommandPattern(Value):
    """The specifier of a rule for commands."""

    text: str
    literal: str
    """The text before its first wildcard."""

    words: tuple[str, ...]
    """All its literal words."""

    exact: bool
    """No wildcard: it means one command only."""

    glob: Glob
    bare: str | None = None
    """For `git *`: the command that also matches without arguments, and never as `gitk`."""

    def matches(self, text: str) -> bool:
        """Whether the pattern means all of this text."""
        if self.bare is None:
            return self.glob.matches(text)
        end = len(self.bare)
        return text.startswith(self.bare) and text[end : end + 1] in {"", " ", "\t", "\n"}

    @property
    def first_word(self) -> str | None:
        """The word that every text begins with which it matches; None if they differ."""
        words = self._whole_words
        return words[0] if words else None

    @property
    def second_word(self) -> str | None:
        """The word that comes next in every text that it matches; None if they differ."""
        words = self._whole_words
        return words[1] if len(words) > 1 else None

    @property
    def _whole_words(self) -> list[str]:
        """The words before its first wildcard that the wildcard does not touch."""
        words = self.literal.split()
        whole = self.exact or self.bare is not None or self.literal[-1:].isspace()
        return words if whole else words[:-1]

    def names(self, token: str, program: str | None = None) -> bool:
        """Does it write this out: an option, a setting, the name of a file that is run?

        `program` is the command itself. Its name is no other word: a rule for `sh` does not name a
        file `sh` that it runs.
        """
        if self.exact:
            return True
        words = list(self.words)
        if program in words:
            words.remove(program)
        if (token[:1] == "-" and len(token) > 2) or token[-1:] == "=":
            return any(word.startswith(token) for word in words)
        return bool(token) and token in words


class Rule(Value):
    """A parsed rule."""

    text: str
    tool: str
    specifier: str | None = None
    """None: every call of the tool."""

    command: CommandPattern | None = None
    path: PathPattern | None = None
    domain: str | None = None
    name: Glob | None = None
    """The name that an agent, a skill or the like must have."""

    tools: Glob | None = None
    """The tools that match besides `tool`: those of `mcp__server`, or `mcp__server__get_*`."""


COMMANDS = frozenset({"Bash", "PowerShell", "Monitor"})
READING = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
ALIASES = {"Task": "Agent"}
"""Names that an older or newer CLI has for the same tool."""

_SHAPE = re.compile(r"([^()\s]+)(?:\((.*)\))?", re.DOTALL)
_TOOL = re.compile(r"[A-Za-z][\w.*-]*")


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises RuleError if it is not valid."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise RuleError(text, "it must be Tool or Tool(specifier)")
    written, specifier = shape.groups()
    tool = ALIASES.get(written, written)
    if not _TOOL.fullmatch(tool) and tool != "*":
        raise RuleError(text, f"{written!r} is not the name of a tool")
    if specifier is not None and not specifier.strip():
        raise RuleError(text, "there is nothing between its brackets")
    if tool.startswith("mcp__"):
        return _mcp(text, _check_bounds(text, tool), specifier)
    if "*" in tool:
        raise RuleError(text, "only names of MCP tools may have a wildcard")
    if specifier is None or (specifier == "*" and tool not in READING | EDITING):
        return Rule(text=text, tool=tool)
    if tool in COMMANDS:
        return Rule(
            text=text, tool=tool, specifier=specifier, command=command_pattern(text, specifier)
        )
    if tool in READING | EDITING:
        return Rule(text=text, tool=tool, specifier=specifier, path=_path(text, specifier))
    if tool == "WebFetch":
        return Rule(text=text, tool=tool, specifier=specifier, domain=_domain(text, specifier))
    if tool == "WebSearch":
        raise RuleError(text, "WebSearch takes no specifier")
    return Rule(text=text, tool=tool, specifier=specifier, name=_name_glob(text, specifier))


def command_pattern(text: str, specifier: str) -> CommandPattern:
    """Read the specifier of a rule for commands. Raises RuleError."""
    if ":*" in specifier[:-2]:
        raise RuleError(text, "`:*` is allowed only at the end")
    if specifier == ":*":
        raise RuleError(text, "there is no command before `:*`")
    body = specifier[:-2] + " *" if specifier.endswith(":*") else specifier
    glob = Glob.of(_check_bounds(text, body))
    literal = glob.pieces[0]
    # A rule for `git *` is one for `git` too.
    bare = body[:-2] if len(glob.pieces) == 2 and body.endswith(" *") else None
    return CommandPattern(
        text=specifier,
        literal=literal if bare is None else literal.rstrip(),
        words=tuple(" ".join(glob.pieces).split()),
        exact=len(glob.pieces) == 1,
        glob=glob,
        bare=bare,
    )


def _check_bounds(text: str, pattern: str, signs: str = "*") -> str:
    if (why := too_wild(pattern, signs)) is not None:
        raise RuleError(text, why)
    return pattern


def _path(text: str, specifier: str) -> PathPattern:
    try:
        return path_pattern(_check_bounds(text, specifier, "*?["))
    except BadPattern as error:
        raise RuleError(text, str(error)) from error


def _mcp(text: str, tool: str, specifier: str | None) -> Rule:
    if specifier not in {None, "*"}:
        raise RuleError(text, "a rule for MCP tools takes no specifier")
    parts = tool.split("__")
    if len(parts) < 2 or not parts[1]:
        raise RuleError(text, "it must be mcp__server or mcp__server__tool")
    if "*" in tool:
        return Rule(text=text, tool=tool, tools=Glob.of(tool))
    if len(parts) == 2:
        return Rule(text=text, tool=tool, tools=Glob.of(f"{tool}__*"))
    return Rule(text=text, tool=tool)


def _domain(text: str, specifier: str) -> str:
    kind, colon, host = specifier.partition(":")
    if kind.strip() != "domain" or not colon or not host.strip():
        raise RuleError(text, "WebFetch takes domain:host")
    if re.search(r"[/@\s\\]", host.strip()):
        raise RuleError(text, "a domain is a host without scheme, path or port")
    return _check_bounds(text, host.strip().lower())


def _name_glob(text: str, specifier: str) -> Glob:
    body = specifier[:-2] + "*" if specifier.endswith(":*") else specifier
    return Glob.of(_check_bounds(text, body))
