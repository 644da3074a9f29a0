"""The messages that agents have sent to a session in the last hour. Pure.

They are counted by minute, in the view of the session that gets them: so the count is the same
after a restart, and for all hubs.
"""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.domain.structs import Value

HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


class AgentMessages(Value):
    """What one agent has sent in one minute."""

    by: str
    """As the `by` of a prompt."""
    minute: int
    """Since 1970."""
    count: int = 1


def with_message(
    messages: tuple[AgentMessages, ...], by: str, at: int
) -> tuple[AgentMessages, ...]:
    """One more at this time, in ms. What is older than an hour is dropped."""
    minute = at // _MINUTE_MS
    kept = [each for each in messages if _is_recent(each, at)]
    same = sum(each.count for each in kept if (each.by, each.minute) == (by, minute))
    others = [each for each in kept if (each.by, each.minute) != (by, minute)]
    return (*others, AgentMessages(by=by, minute=minute, count=same + 1))


def recent_messages(messages: Iterable[AgentMessages], now: int, by: str | None = None) -> int:
    """How many there were within the last hour, and the minute in which it began; of one agent, or
    of all.
    """
    return sum(each.count for each in messages if by in {None, each.by} and _is_recent(each, now))


def _is_recent(messages: AgentMessages, now: int) -> bool:
    return messages.minute >= (now - HOUR_MS) // _MINUTE_MS
