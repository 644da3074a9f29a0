"""Outgoing lines of a WebSocket, so that a lost connection loses none of them.

Owns the decision what to resend after a reconnect. `WebSocketLink` and `DialLink` write the lines;
this module knows times and bytes, no socket and no message.

A line is in one of two states. *Waiting*: not written yet. When too many bytes wait, senders wait
too. *Unconfirmed*: written, but perhaps not delivered, because a connection can die silently. A
line is confirmed when bytes arrive over the same connection some time after it was written. After a
reconnect all unconfirmed lines are written again, before the waiting ones, in the old order. So a
line may arrive twice, which the CLI allows: it drops a prompt whose uuid it knows, and ignores a
second answer.

A line is also confirmed by time. Both ends ping. If a connection was considered alive that many
seconds after the write, a later ping was answered. So lines stay unconfirmed for a short time only,
and an `interrupt` of a minute ago is not resent into a later turn.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.base import Closing, check_text_lines

LIMIT = 16 * 1024 * 1024

# Bytes that arrive just after a write were on their way before it and prove nothing.
PROOF_SECONDS = 1.0

# A ping every 20 s, and 20 s for its answer: a dead connection is noticed in this time.
ALIVE_SECONDS = 45.0


class Outbox:
    """Lines waiting and lines in doubt. Times are the caller's, from one clock."""

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        proof_seconds: float = PROOF_SECONDS,
        alive_seconds: float = ALIVE_SECONDS,
    ) -> None:
        self._limit = limit
        self._proof_seconds = proof_seconds
        self._alive_seconds = alive_seconds
        self._waiting: deque[bytes] = deque()
        self._waiting_size = 0
        self._unconfirmed: deque[tuple[float, bytes]] = deque()
        self._unconfirmed_size = 0

    @property
    def full(self) -> bool:
        """Whether senders should wait."""
        return self._waiting_size >= self._limit

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._waiting

    def put(self, data: bytes) -> None:
        """Let `data` wait to be written."""
        self._waiting.append(data)
        self._waiting_size += len(data)

    def take(self, now: float) -> bytes | None:
        """What to write next, or None. From here on it is in doubt, also while it is written."""
        if not self._waiting:
            return None
        data = self._waiting.popleft()
        self._waiting_size -= len(data)
        self._unconfirmed.append((now, data))
        self._unconfirmed_size += len(data)
        # Lines are unconfirmed for seconds only; the limit is for a peer that never sends anything.
        while self._unconfirmed_size > self._limit and len(self._unconfirmed) > 1:
            self._forget()
        return data

    def confirm(self, now: float) -> None:
        """Bytes arrived over the connection: lines that were written long enough ago are
        confirmed.
        """
        self._confirm_until(now - self._proof_seconds)

    def connection_lost(self, now: float) -> None:
        """The connection is seen to be gone: until some time ago it was alive."""
        self._confirm_until(now - self._alive_seconds)

    def requeue(self) -> None:
        """A new connection: unconfirmed lines wait again, first and in order."""
        for _, data in reversed(self._unconfirmed):
            self._waiting.appendleft(data)
        self._waiting_size += self._unconfirmed_size
        self._unconfirmed.clear()
        self._unconfirmed_size = 0

    def _confirm_until(self, then: float) -> None:
        while self._unconfirmed and self._unconfirmed[0][0] <= then:
            self._forget()

    def _forget(self) -> None:
        _, data = self._unconfirmed.popleft()
        self._unconfirmed_size -= len(data)


class OutboxLink(Closing):
    """The sending side of a resumable link: lines go through an outbox, one sender at a time."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._over: LinkClosed | None = None
        self._input_ended = False
        self._send_order = asyncio.Lock()
        self._changed = asyncio.Event()
        """Set when the connection or the end of the link may let senders continue."""

    @property
    def resumable(self) -> bool:
        """A lost connection is replaced by a new one."""
        return True

    async def send(self, data: bytes) -> None:
        """Send whole lines; kept, and sent after the reconnect, while the connection is down.

        Waits while the other end is slow, or while too much is kept. If it is cancelled while it
        waits, nothing of `data` is sent.
        """
        check_text_lines(data)
        if not data:
            return
        async with self._send_order:
            await self._flush()
            while self._outbox.full and self._over is None:
                await self._wait_for_room()
                await self._flush()
            self._check_over()
            if self._input_ended:
                raise LinkClosed("Nothing more can be sent: the input has ended.")
            self._outbox.put(data)
            await self._flush()

    async def end_input(self) -> None:
        """Refuse to send from here on. A WebSocket cannot signal the end of input."""
        self._input_ended = True

    async def flush(self) -> None:
        """Write the waiting lines, in order."""
        async with self._send_order:
            await self._flush()

    @abstractmethod
    async def _flush(self) -> None:
        """Write the waiting lines while there is a connection. The caller has the order."""

    async def _wait_for_room(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _check_over(self) -> None:
        if self._over is not None:
            raise self._over.copy()
