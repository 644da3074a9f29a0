"""The account of a session: usage, budgets, alarms, limits, crashes.

`journal.accounts` folds it.
"""

from __future__ import annotations

from msgspec import field

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import (
    BudgetReached,
    ModelTokens,
    RateLimited,
)


class AlarmView(Value):
    """An active alarm, as its event has it."""

    text: str
    action: str
    at: int
    coded: CodedText | None = None
    act: str = ""


class Account(Value):
    """Usage, budgets, alarms and limits of a session."""

    usd: float = 0.0
    """The total cost, including estimates."""
    estimated_usd: float = 0.0
    """The estimated part of it."""
    tokens: int = 0
    run_usd: float = 0.0
    run_tokens: int = 0
    run_turns: int = 0
    tool_calls: int = 0
    metered: tuple[ModelTokens, ...] = ()
    """The usage of the open turn so far."""
    metered_calls: int = 0

    budgets: dict[str, BudgetReached] = field(default_factory=dict)
    """The reached budgets, by `budget_key`."""
    alarms: dict[str, AlarmView] = field(default_factory=dict)
    """The active alarms, or those of the last run at its end."""
    limits: dict[str, RateLimited] = field(default_factory=dict)
    """The account's limits, by name."""

    resumed: bool = False
    """Whether the current or last run resumed a conversation."""
    stopping: int = 0
    """When the current or last run was asked to end; 0: it was not."""
    up_since: int = 0
    """When the current or last run started; 0: it did not."""
    ended_at: int = 0
    crashes: int = 0
    """How many crashes came in a row, each soon after the start."""
