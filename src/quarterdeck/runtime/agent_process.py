"""Commands that refuse to run in an agent's process.

Every process that a CLI starts has a mark in its environment, set when the CLI was started
(`runner.launch`, `links.subprocess`). A command that acts for a person refuses when it finds a
mark. Otherwise an agent could answer its own questions with the person's token.

This is not a security boundary: a program can remove variables from its environment. It backs up
the built-in rules of policy, for calls that those cannot read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from quarterdeck.domain.errors import Forbidden

MARKS = ("QUARTERDECK_RUN_", "QUARTERDECK_LINK_")
FREE = frozenset({"run", "record", "replay", "doctor", "sessions", "demo", "mcp"})
"""Commands that use no hub, make one of their own that is gone when they end, or use it with the
token of an agent only (`mcp` looks at the token)."""


class AgentRefused(Forbidden):
    """An agent runs a command that is for people."""


def is_agent(environ: Mapping[str, str] | None = None) -> bool:
    """Whether this process was started by an agent."""
    return any(name.startswith(MARKS) for name in (os.environ if environ is None else environ))


def refuse_agents(what: str) -> None:
    """Raise `AgentRefused` in an agent's process."""
    if is_agent():
        raise AgentRefused(
            f"{what} is reserved for people, and this process was started by an agent"
            f" ({MARKS[0]}… is in its environment)"
        )
