"""Flood control: how many calls a chat and the bot may make, and the refusals with `retry_after`.

Telegram publishes no exact rules. These are the limits of its FAQ, taken literally: a bot that is
never refused here is not refused there.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque

from quarterdeck.domain.structs import Value
from quarterdeck.testing.telegram.refusal import Refusal, too_many

SECOND, MINUTE = 1.0, 60.0


class FloodLimits(Value):
    """How many calls that show something are allowed; 0: any number."""

    chat_per_second: int = 1
    group_per_minute: int = 20
    overall_per_second: int = 30


NO_LIMITS = FloodLimits(chat_per_second=0, group_per_minute=0, overall_per_second=0)


class FloodControl:
    """Counts accepted calls, and refuses those that are too many or that a test ordered away."""

    def __init__(self, limits: FloodLimits) -> None:
        self.limits = limits
        self._chats: defaultdict[int, deque[float]] = defaultdict(deque)
        self._all: deque[float] = deque()
        self._ordered: dict[int | None, tuple[int, int]] = {}
        self._blocked: dict[int | None, float] = {}

    def order(self, chat: int | None, calls: int, retry_after: int) -> None:
        """Refuse the next calls for a chat, or for all chats with None."""
        self._ordered[chat] = (calls, retry_after)

    def check(self, chat: int, now: float) -> None:
        """Count a call, or raise a 429."""
        for scope in (chat, None):
            self._check_block(scope, now)
        for scope in (chat, None):
            self._check_order(scope, now)
        limits = self.limits
        mine = self._chats[chat]
        self._check_window(mine, limits.chat_per_second, SECOND, now)
        if chat < 0:
            self._check_window(mine, limits.group_per_minute, MINUTE, now)
        self._check_window(self._all, limits.overall_per_second, SECOND, now)
        for window in (mine, self._all):
            window.append(now)
            while window[0] <= now - MINUTE:
                window.popleft()

    def _check_block(self, scope: int | None, now: float) -> None:
        until = self._blocked.get(scope, 0.0)
        if until > now:
            # A bot that does not wait is told so again.
            raise _refusal(until - now)

    def _check_order(self, scope: int | None, now: float) -> None:
        calls, seconds = self._ordered.get(scope, (0, 0))
        if calls <= 0:
            return
        self._ordered[scope] = (calls - 1, seconds)
        self._blocked[scope] = now + seconds
        raise _refusal(seconds)

    def _check_window(self, window: deque[float], most: int, seconds: float, now: float) -> None:
        if not most:
            return
        recent = [at for at in window if at > now - seconds]
        if len(recent) >= most:
            raise _refusal(recent[-most] + seconds - now)


def _refusal(seconds: float) -> Refusal:
    return too_many(max(1, math.ceil(seconds)))
