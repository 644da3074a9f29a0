"""How much one client may have under way: requests, streams, and bodies that are still coming.

Owns these counts, by login or token, or by address where there is neither. The gate uses it for
everything that it admits, so that no endpoint can forget it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.asgi import Message, Receive
from quarterdeck.fronts.http.problems import Refused

MEGABYTE = 1024 * 1024


class RequestLimits(Value):
    """What one client may have under way."""

    at_once: int = 256
    """Requests and streams."""

    reads_at_once: int = 8
    """Requests that read, until their answer begins; the others wait. What all of them do together
    in one round of the event loop is what everybody else waits for."""

    changes_at_once: int = 16
    """The same for requests that have a body, or change something: some wait for an agent."""

    body_bytes: int = 64 * MEGABYTE
    """Bodies that are not complete, together."""

    body_seconds: float = 30.0
    """The time for a body, and between two pieces of it."""

    body_rate: int = 8 * 1024
    """Bytes in a second that give a large body more time."""


class UnderWay:
    """What each client has under way."""

    def __init__(
        self,
        limits: RequestLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or RequestLimits()
        self._clock = clock
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._in_turn: Counter[str] = Counter()
        """Requests that have their turn, or wait for it."""

    @contextmanager
    def count(self, client: str) -> Iterator[None]:
        """Count a request or a stream. Raises `Refused` if the client has too many."""
        if self._requests[client] >= self.limits.at_once:
            most = self.limits.at_once
            raise Refused("too_many_requests", f"at most {most} requests and streams at once")
        self._requests[client] += 1
        try:
            yield
        finally:
            _less(self._requests, client, 1)

    @asynccontextmanager
    async def turn(self, client: str, *, reads: bool) -> AsyncIterator[Callable[[], None]]:
        """Wait until few requests of this client are worked on; gives what ends the turn early."""
        most = self.limits.reads_at_once if reads else self.limits.changes_at_once
        key = f"{'reads' if reads else 'changes'} {client}"
        turns = self._turns.setdefault(key, asyncio.Semaphore(most))
        self._in_turn[key] += 1
        holds = False

        def end() -> None:
            nonlocal holds
            if holds:
                holds = False
                turns.release()

        try:
            holds = await turns.acquire()
            yield end
        finally:
            end()
            _less(self._in_turn, key, 1)
            if key not in self._in_turn:
                del self._turns[key]

    @contextmanager
    def body(self, client: str, receive: Receive) -> Iterator[Receive]:
        """Bound a body in time, and count it while it comes: gives the `receive` to use.

        That raises `Refused` for a body that is too slow, or one too many.
        """
        limits, began = self.limits, self._clock()
        taken, complete = 0, False

        async def receive_bounded() -> Message:
            nonlocal taken, complete
            if complete:
                return await receive()
            left = limits.body_seconds + taken / limits.body_rate - (self._clock() - began)
            message: Message | None = None
            with anyio.move_on_after(max(0.0, min(left, limits.body_seconds))):
                message = await receive()
            if message is None:
                raise Refused("body_too_slow", "the body did not arrive in time")
            size = len(message.get("body", b""))
            taken += size
            self._bytes[client] += size
            if self._bytes[client] > limits.body_bytes:
                raise Refused("too_many_requests", "too much of this client is under way")
            if not message.get("more_body", False):
                complete = True
            return message

        try:
            yield receive_bounded
        finally:
            _less(self._bytes, client, taken)


def _less(counts: Counter[str], client: str, count: int) -> None:
    counts[client] -= count
    if counts[client] <= 0:
        del counts[client]
