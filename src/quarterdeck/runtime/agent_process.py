"""Agents at the command line: which commands refuse to run in an agent's process.

Every process that a CLI starts has a mark in its environment, put there by whoever started the CLI
(`runner.launch`, `links.subprocess`). A command that speaks for a person refuses where it finds
one: otherwise an agent could answer its own questions with the person's token.

It is no wall: a program can take variables out of its environment. It stands behind the built-in
rules of policy, for the calls which those cannot read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from quarterdeck.domain.errors import Forbidden

MARKS = ("QUARTERDECK_RUN_", "QUARTERDECK_LINK_")
FREE = frozenset({"run", "record", "replay", "doctor", "sessions", "demo"})
"""Commands that use no hub, or make one of their own that is gone when they end."""


class AgentRefused(Forbidden):
    """An agent runs a command that is for people."""


def is_agent(environ: Mapping[str, str] | None = None) -> bool:
    """Whether this process was started by an agent."""
    return any(name.startswith(MARKS) for name in (os.environ if environ is None else environ))


def refuse_agents(what: str) -> None:
    """Raise `AgentRefused` in an agent's process."""
    if is_agent():
        raise AgentRefused(
            f"{what} is for people, and this process was started by an agent"
            f" ({MARKS[0]}… is in its environment)"
        )
