"""Claude Code as a program: find it, build its command line, its environment and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.claude.environment import Passed, child_environment, explain_environment
    from quarterdeck.claude.flags import SINCE
    from quarterdeck.claude.launch import ArgumentFiles, Launch, require_support, to_argv
    from quarterdeck.claude.locate import cli_version, find_claude

__all__ = [
    "SINCE",
    "ArgumentFiles",
    "Launch",
    "Passed",
    "child_environment",
    "cli_version",
    "explain_environment",
    "find_claude",
    "require_support",
    "to_argv",
]

__getattr__ = load_later(
    __name__,
    {
        "environment": ("Passed", "child_environment", "explain_environment"),
        "flags": ("SINCE",),
        "launch": ("ArgumentFiles", "Launch", "require_support", "to_argv"),
        "locate": ("cli_version", "find_claude"),
    },
)
