"""What runs the turns of a loop: the library without a hub, or sessions of a hub.

A worker starts an agent for each turn, waits for its background tasks, and gives a `TurnOutcome`.
It decides nothing about the loop.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from quarterdeck.domain.structs import Value
from quarterdeck.loop.spec import LoopSpec
from quarterdeck.loop.state import TurnOutcome


class TurnKind(StrEnum):
    """What a turn is for."""

    PLAN = "plan"
    WORK = "work"
    REVIEW = "review"

    @property
    def changes_files(self) -> bool:
        """Whether the agent gets the tools that change files."""
        return self is TurnKind.WORK


EDITING_TOOLS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
"""Tools that an agent that plans or reviews does not get. Its commands are left to the rules."""


class TurnRequest(Value):
    """One turn of an agent."""

    loop: str
    number: int
    """Counts all turns of the loop; a turn that is asked for again has the same number."""
    created: float
    """When the loop was made, in seconds since 1970."""
    kind: TurnKind
    prompt: str
    directory: str
    spec: LoopSpec
    schema: bytes | None = None
    """The JSON schema of the structured result."""
    budget_usd: float | None = None
    """What the turn may cost."""
    session: str | None = None
    """The conversation to continue; None begins a new one."""
    model: str | None = None


class Worker(Protocol):
    """Runs turns, one at a time."""

    async def run(self, request: TurnRequest) -> TurnOutcome:
        """Run a turn to its end. A failed turn is an outcome; what no turn could mend is raised."""

    async def interrupt(self) -> None:
        """End the turn that runs now, so that `run` gives its outcome soon."""

    async def finish(self, session: str | None) -> None:
        """The loop is over: end what still runs for its conversation, if it has one."""
