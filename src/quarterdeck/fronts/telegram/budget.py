"""How often Telegram may be called: the limits, and what is left of them. Pure, with no clock.

A call counts from its end. The next one of the chat begins a second after that, so that Telegram
sees them more than a second apart, however long each was on its way.
"""

from __future__ import annotations

from collections import deque

from quarterdeck.domain.structs import Value

MINUTE = 60.0
SECOND = 1.0
FLOODED_CHATS = 3
"""So many chats that are refused in a row mean that the whole bot is."""


class Limits(Value):
    """The limits of the Bot API, as its FAQ has them."""

    chat_seconds: float = 1.0
    """Between two calls for one chat."""
    group_per_minute: int = 20
    overall_per_second: int = 30
    group_reserve: int = 5
    """Of a group's calls in a minute, those that are kept for messages: edits which only show
    progress do not use them."""
    in_flight: int = 30
    """Calls at the same time."""
    draft_seconds: float = 20.0
    """After this a draft is sent again, unchanged: Telegram removes it after 30 seconds."""
    longest_pause: float = 60.0
    """The most to wait between attempts while Telegram cannot be reached."""


class ChatBudget:
    """The calls of one chat. Groups have negative ids, and a limit for each minute."""

    def __init__(self, chat: int, limits: Limits) -> None:
        self._limits = limits
        self._group = chat < 0
        self._last = float("-inf")
        self._recent: deque[float] = deque()
        self.blocked_until = float("-inf")
        """Telegram told us to wait until then."""

    def note_call(self, now: float) -> None:
        """A call has ended."""
        self._last = now
        if self._group:
            self._recent.append(now)

    def due(self, now: float, *, lazy: bool) -> float:
        """When the next call may begin. `lazy`: it leaves the reserve alone."""
        due = max(self._last + self._limits.chat_seconds, self.blocked_until)
        if not self._group:
            return due
        while self._recent and self._recent[0] <= now - MINUTE:
            self._recent.popleft()
        most = self._limits.group_per_minute - (self._limits.group_reserve if lazy else 0)
        most = max(most, 1)
        if len(self._recent) < most:
            return due
        return max(due, self._recent[len(self._recent) - most] + MINUTE)

    def idle(self, now: float) -> bool:
        """Whether nothing of it matters any more."""
        return self.due(now, lazy=True) <= now and not self._recent


class OverallBudget:
    """The calls of all chats.

    Telegram does not say whether a chat or the whole bot has made too many calls. One chat that is
    refused says nothing about the others. Several in a row, with no success between them, do: then
    everything waits for a moment, and one call finds out whether it is over.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._recent: deque[float] = deque()
        self._refused: set[int] = set()
        self._floods = 0
        self.in_flight = 0
        self.blocked_until = float("-inf")

    def began(self) -> None:
        """A call has begun."""
        self.in_flight += 1

    def note_end(self, now: float) -> None:
        """A call has ended."""
        self.in_flight -= 1
        self._recent.append(now)

    def note_accepted(self) -> None:
        """Telegram has done what a call asked for."""
        self._refused.clear()
        self._floods = 0

    def note_refused(self, chat: int, now: float, retry_after: float) -> None:
        """A call for a chat was one too many."""
        self._refused.add(chat)
        if len(self._refused) >= FLOODED_CHATS and now >= self.blocked_until:
            self.blocked_until = now + min(2.0**self._floods, retry_after)
            self._floods = min(self._floods + 1, 16)

    def block(self, until: float) -> None:
        """No call works at all until then, as far as is known."""
        self.blocked_until = max(self.blocked_until, until)

    @property
    def full(self) -> bool:
        """Whether one must end before another begins."""
        return self.in_flight >= (1 if self._floods else self._limits.in_flight)

    def due(self, now: float) -> float:
        """When the next call may begin."""
        while self._recent and self._recent[0] <= now - SECOND:
            self._recent.popleft()
        room = self._limits.overall_per_second - self.in_flight
        if len(self._recent) < room:
            return self.blocked_until
        if room < 1:
            return now + SECOND
        return max(self.blocked_until, self._recent[len(self._recent) - room] + SECOND)
