"""Whose turn it is: the chats that have something to do, and when each may be served. No I/O.

Of the chats that are due, the one that was served longest ago is next, so that a chat with a
thousand messages delays another one by one call at most. Stored work of a chat is first, then edits
that show progress, then drafts.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from quarterdeck.fronts.telegram.budget import ChatBudget, Limits, OverallBudget
from quarterdeck.fronts.telegram.outbox_store import Content
from quarterdeck.fronts.telegram.text import Part


class Draft(Struct):
    """A text that is being written."""

    chat: int
    thread: int | None
    number: int
    part: Part
    can_stop: bool
    shown: Part | None = None
    shown_at: float = 0.0

    def due(self, every: float) -> float:
        """When it must be sent: now if it has changed, else before Telegram removes it."""
        return self.shown_at + every if self.shown == self.part else float("-inf")


class ChatTurn:
    """What a chat has to do."""

    def __init__(self, number: int, limits: Limits) -> None:
        self.number = number
        self.budget = ChatBudget(number, limits)
        self.busy = False
        self.stored = True
        """Whether the store may have work for it."""
        self.lazy: dict[str, Content] = {}
        self.drafts: dict[str, Draft] = {}
        self.served = 0.0
        self.tries = 0
        self._limits = limits

    def due(self, now: float) -> float | None:
        """When it may be served; None: nothing to do."""
        if self.stored:
            return self.budget.due(now, lazy=False)
        if self.lazy:
            return self.budget.due(now, lazy=True)
        if self.drafts:
            every = self._limits.draft_seconds
            ready = min(draft.due(every) for draft in self.drafts.values())
            return max(self.budget.due(now, lazy=True), ready)
        return None

    def next_draft(self, now: float) -> tuple[str, Draft] | None:
        """The draft that must be sent."""
        every = self._limits.draft_seconds
        return next((row for row in self.drafts.items() if row[1].due(every) <= now), None)


class Turns:
    """All chats that have something to do, or had it a moment ago."""

    def __init__(self, limits: Limits) -> None:
        self.overall = OverallBudget(limits)
        self._limits = limits
        self._chats: dict[int, ChatTurn] = {}

    def restart(self) -> None:
        """No call is under way, and each chat may have something to do."""
        self.overall.in_flight = 0
        for chat in self:
            chat.busy, chat.stored = False, True

    def find(self, number: int) -> ChatTurn | None:
        """A chat, if it is known."""
        return self._chats.get(number)

    def add(self, number: int, blocked_until: float) -> ChatTurn:
        """A chat that was not known."""
        chat = self._chats[number] = ChatTurn(number, self._limits)
        chat.budget.blocked_until = blocked_until
        return chat

    def __iter__(self) -> Iterator[ChatTurn]:
        return iter(list(self._chats.values()))

    def next(self, now: float) -> tuple[ChatTurn, float] | None:
        """The chat that is next, and when; None: nothing is to be done."""
        best: tuple[tuple[bool, float, float], ChatTurn, float] | None = None
        for chat in self:
            if chat.busy:
                continue
            due = chat.due(now)
            if due is None:
                if chat.budget.idle(now):
                    del self._chats[chat.number]
                continue
            late = due > now
            rank = (late, due if late else chat.served, chat.served)
            if best is None or rank < best[0]:
                best = rank, chat, due
        if best is None:
            return None
        _, chat, due = best
        return chat, max(due, self.overall.due(now))
