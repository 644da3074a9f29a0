"""The state of a loop: what has happened so far. It is stored as the loop's manifest.

Everything that a decision needs is here, so that a loop that was killed goes on where it was. Each
step changes the state once, when it is over: a step that was cut off is done again.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.loop.spec import LoopSpec, StopReason

SHOWN_TEXT = 8_000
"""Characters of a turn's answer that are kept: its end, where the outcome is."""
SHOWN_OUTPUT = 8_000
"""Characters of a command's output that are kept: its end."""

VERSION = 1


class Check(Value):
    """A command that was run to check the work, with the end of its output."""

    command: str
    code: int | None
    """The exit code; None if it did not end in time."""
    output: str = ""
    seconds: float = 0.0
    failing: int | None = None
    """The number of failing tests, where the output tells it."""
    sandbox: str = "off"
    """The mode of the sandbox that it ran in: `off` is none."""


class CallRecord(Value):
    """The entry of a tool call: who or what allowed or denied it, and why."""

    at: float
    """In seconds since 1970."""
    turn: int
    """Counts all turns of agents, those that plan and review included."""
    tool: str
    title: str
    verdict: str
    """`allow` or `deny`."""
    by: str
    """A person, `policy`, or `cli` if the CLI decided by itself."""
    reasons: tuple[str, ...] = ()
    rule: str | None = None
    source: str | None = None
    rewritten: bool = False
    """The input that ran is not the one that the agent asked for."""


class Verdict(Value):
    """What the reviewer says about a turn."""

    agree: bool
    reason: str = ""


class Limited(Value):
    """The account's usage limit has ended a turn."""

    resets_at: float | None = None
    """In seconds since 1970; None if nobody knows."""


class TurnOutcome(Value):
    """How one turn of an agent ended."""

    text: str = ""
    failed: bool = False
    outcome: str = ""
    """The CLI's code for the end of the turn."""
    cost_usd: float = 0.0
    session: str | None = None
    """The id that continues the conversation."""
    result: Raw = ABSENT
    """The structured result."""
    denied: tuple[str, ...] = ()
    """Tool calls that were denied, each with the reason."""
    limited: Limited | None = None
    stopped_by: str | None = None
    """A person has ended the turn from somewhere else."""
    undrained: int = 0
    """Background tasks that were still running when the time for them was over."""
    files: str | None = None
    """The folder in which the turn worked, where that is not the loop's."""
    sandbox: str = ""
    """The mode of the sandbox of its agent, where the loop has made it: `off` is none."""


class Turn(Value):
    """A turn that works on the task, with all that follows it."""

    number: int
    began: float
    ended: float
    outcome: TurnOutcome
    changed: bool | None = None
    """Whether it changed any file; None if that could not be found out."""
    commit: str | None = None
    check: Check | None = None
    verdict: Verdict | None = None
    review_usd: float = 0.0
    cut_off: StopReason | None = None
    """The limit that ended it early."""


class Stopped(Value):
    """Why and when the loop stopped, with a sentence for people."""

    reason: StopReason
    text: str
    at: float
    by: str | None = None


Host = Literal["local", "hub"]


class LoopState(Value):
    """The manifest of a loop."""

    id: str
    spec: LoopSpec
    created: float
    version: int = VERSION
    host: Host = "local"
    by: str = ""
    plan: str | None = None
    plan_usd: float = 0.0
    turns: tuple[Turn, ...] = ()
    steps: int = 0
    """Turns of agents that were started: the number of the next one is one more."""
    session: str | None = None
    """The conversation, where there is one for the whole loop."""
    waited: float = 0.0
    """Seconds that the loop has waited for the account's limit."""
    waiting_until: float | None = None
    """It waits for the account's limit now, until this time."""
    limit_failures: int = 0
    """Turns in a row that the account's limit has ended."""
    lost_usd: float = 0.0
    """The cost of turns that are not counted, because a limit ended them."""
    paused: bool = False
    worked: float = 0.0
    """Seconds for which the loop has run, without pauses and waits for the limit."""
    directory: str | None = None
    """Where it works: the worktree, if it has one."""
    proof: tuple[Check, ...] = ()
    """What was run at the end to check the result."""
    stopped: Stopped | None = None
    settings: Raw = ABSENT
    """What the host needs to start agents again; its own business."""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def cost_usd(self) -> float:
        """What all turns have cost, those of the reviewer included."""
        turns = sum(turn.outcome.cost_usd + turn.review_usd for turn in self.turns)
        return turns + self.plan_usd + self.lost_usd
