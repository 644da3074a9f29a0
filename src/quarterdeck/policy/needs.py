"""Needs: the things that must each be allowed before a tool call may pass.

A call is taken apart once, and every rule, Claude Code's or ours, is held against the pieces:
allow needs every need allowed, deny and ask fire on any.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Raw

from quarterdeck.domain.structs import Fact
from quarterdeck.policy.shell import Part, Script, Target


class NeedKind(StrEnum):
    """What has to be allowed."""

    TOOL = "tool"
    """The tool itself: MCP tools, Agent, WebSearch, and all that has no finer need."""

    COMMAND = "command"
    """One part of a shell command, with what it does beyond its name."""

    EDIT = "edit"
    """A path is written: by Edit and Write, a redirection, `tee`, `rm` …"""

    READ = "read"
    FETCH = "fetch"
    """A host is fetched from."""

    UNKNOWN = "unknown"
    """What cannot be known before it runs. Only a rule for all of the tool, or for exactly this
    command, allows it."""


class Need(Fact):
    """One thing that has to be allowed."""

    kind: NeedKind
    what: str
    """For people: the command's text, the path, the host."""

    part: Part | None = None
    target: Target | None = None
    host: str | None = None
    why: str = ""
    """Why there is this need, where it is not plain: `tee writes it`."""


class Context(Fact):
    """What the caller knows of the place where a call would run. Nothing is looked up."""

    cwd: str | None = None
    home: str | None = None
    directories: tuple[str, ...] = ()
    """Folders besides `cwd` that the session may work in (`--add-dir`)."""

    settings: str | None = None
    """The project's folder, which rules from its settings are relative to; `cwd` if not told."""

    resolve: Callable[[str], str] | None = None
    """Gives the true path behind links, for a caller that can look. Without it, paths are taken by
    their text, and a path that a link could bend is not allowed by rule."""


class Request(Fact):
    """A tool call, taken apart."""

    tool: str
    needs: tuple[Need, ...]
    script: Script | None = None
    command: str | None = None
    """The whole command, for Bash: a rule without wildcards may name exactly it."""

    name: str | None = None
    """What an Agent, Skill or similar call is for: the subagent's type."""


def needs_of(tool: str, json: Raw, context: Context) -> Request:
    """Take a call apart. Never raises: an input that cannot be read is a need that is unknown."""
    what = Need(kind=NeedKind.TOOL, what=tool)
    return Request(tool=tool, needs=(what,))
