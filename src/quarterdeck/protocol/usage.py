"""What was used: costs, tokens, turns and calls, as a report gives them.

Sums are made in `journal.usage`. It does not know how.
"""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value


class UsageBy(StrEnum):
    """What usage can be asked by."""

    DAY = "day"
    PROJECT = "project"
    MODEL = "model"
    MACHINE = "machine"
    SESSION = "session"


class Used(Value, omit_defaults=False):
    """What was used. The fields are the columns of an engine's table, in this order."""

    cost_usd: float = 0.0
    estimated_usd: float = 0.0
    """How much of the cost is an estimate: of turns that run, or whose end was not reported."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    turns: int = 0
    failed: int = 0
    """How many of the turns ended in an error."""
    tool_calls: int = 0
    asks: int = 0
    """Questions that were settled."""
    waiting_ms: int = 0
    """How long those questions were open, in all."""

    @property
    def tokens(self) -> int:
        """All tokens, those from the cache too."""
        return self.input + self.output + self.cache_read + self.cache_write


class UsageRow(Value):
    """What was used on one day, by one model …; `key` says by which."""

    key: str
    used: Used


class LimitState(Value, omit_defaults=False):
    """Where an account stands, as the last CLI on a machine has reported it."""

    machine: str
    limit: str
    """Which of the account's limits it is; empty where the CLI does not say."""
    status: str
    """`allowed`, `allowed_warning` or `rejected`."""
    at: int
    """When it was reported, in ms since 1970; as `resets_at`."""
    resets_at: int | None = None
    used: float | None = None
    session: str = ""


class UsageReport(Value, omit_defaults=False):
    """What was used, by what was asked for, in all, and where the accounts stand."""

    by: UsageBy
    since: int | None
    until: int | None
    rows: tuple[UsageRow, ...]
    total: Used
    limits: tuple[LimitState, ...]
