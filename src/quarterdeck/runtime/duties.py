"""Work that one hub does for all of them, however many there are.

A `Duty` runs a piece of work while it is this hub's turn. A hub that is alone always has the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

PLACE_SECONDS = 2.0
"""How often the hub on duty tells how far it is."""


class Duty(Protocol):
    """Has work done, by this hub or another one."""

    async def __call__(self, name: str, work: Callable[[], Awaitable[None]], /) -> None:
        """Do the work while it is this hub's turn. The name is that of the work in all hubs."""


class SharedPlace(Protocol):
    """How far the work is, for the hub that goes on with it."""

    async def load(self) -> int | None:
        """The position up to which it was done; None: nobody has begun."""

    async def save(self, position: int) -> None:
        """It was done up to this position. Raises `StaleLease`: it is another hub's work now."""


async def alone(name: str, work: Callable[[], Awaitable[None]], /) -> None:  # noqa: ARG001
    """The duty of the only hub: it does everything."""
    await work()
