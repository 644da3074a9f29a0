"""The types of ASGI that the relay needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from quarterdeck.protocol.roles import Right, Role

# ASGI names and types its messages so.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Caller(Protocol):
    """The person behind a frontend."""

    @property
    def name(self) -> str:
        """The `by` of their commands."""

    @property
    def role(self) -> Role:
        """Their role."""

    def may(self, right: Right) -> bool:
        """Whether they have a right."""

    def need(self, right: Right) -> None:
        """Raise `Forbidden` unless they have a right."""
