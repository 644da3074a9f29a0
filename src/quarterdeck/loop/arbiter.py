"""Who decides about the tool calls of a loop's agents that run without a hub.

Owns the words only: `service` decides by the policies of this machine. A call is decided before it
runs (`show`, the hook of the CLI), and again when the CLI asks about it (`decide`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from quarterdeck.agent.asks import AnyAsk, Decision
from quarterdeck.agent.hooks import HookOutput
from quarterdeck.loop.worker import TurnRequest
from quarterdeck.wire.base import Message
from quarterdeck.wire.hooks import HookInput, UnknownHook
from quarterdeck.wire.versions import Version

HOOK_SECONDS = 2_000_000.0
"""How long the CLI waits for the verdict on a call: 23 days, near the most that it can count. With
a shorter time old versions would let the call pass when a person takes long to answer."""

Person = Callable[[AnyAsk, float | None], Awaitable[Decision | None]]
"""Asks the person at the terminal, for so many seconds; None if nobody has answered."""


class TurnArbiter(Protocol):
    """Decides about the calls of one turn."""

    async def show(self, seen: HookInput | UnknownHook, version: Version | None) -> HookOutput:
        """The CLI is about to run a tool, or to ask about it."""

    async def decide(self, ask: AnyAsk) -> Decision:
        """The CLI asks about a call."""

    async def observe(self, message: Message) -> None:
        """Take note of a message of the CLI."""

    @property
    def denied(self) -> list[str]:
        """The calls that were denied, with the reason, for people and for the next prompt."""


class Arbiter(Protocol):
    """Makes the arbiter of each turn."""

    def turn(self, request: TurnRequest, person: Person | None) -> TurnArbiter:
        """The arbiter of a turn. `person` is None if nobody can be asked."""
