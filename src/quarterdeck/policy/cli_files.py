"""Tools and files that are the CLI's own business: it never asks about them, and needs them.

A plan is written to a file of the CLI, the output of a background task is read from one, and some
tools only report or stop the agent's own work. They need no rule. A rule that stops them still
does.
"""

from __future__ import annotations

import re

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell import Target

OWN_TOOLS = name_set(
    "StructuredOutput KillShell KillBash TaskStop TaskOutput BashOutput ListMcpResourcesTool"
)
"""They act on the agent's own tasks and answers only."""

_PLAN = re.compile(r"~/\.claude/plans/[^/]+\.md")
_OUTPUT = re.compile(r"(?:/private)?/tmp/claude-\d+/(?:[^/]+/)+tasks/[^/]+\.output")
_RESULT = re.compile(r"~/\.claude/projects/(?:[^/]+/)+tool-results/[^/]+")


def is_own_file(target: Target, home: str | None, *, edit: bool) -> bool:
    """Is it certainly a file that the CLI lets every agent use?"""
    if not target.paths or not target.sure or target.glob or target.deep:
        return False
    patterns = (_PLAN,) if edit else (_PLAN, _OUTPUT, _RESULT)
    return all(
        any(pattern.fullmatch(_from_home(path, home)) for pattern in patterns)
        for path in target.paths
    )


def _from_home(path: str, home: str | None) -> str:
    start = None if home is None else home.rstrip("/") + "/"
    return f"~/{path[len(start) :]}" if start is not None and path.startswith(start) else path
