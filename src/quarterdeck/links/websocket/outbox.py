"""What is on its way to the other end of a WebSocket, so that a lost connection loses none of it.

Owns the decision what to send again after a reconnect. `WebSocketLink` and `DialLink` write what
it gives; it knows times and bytes, no socket and no message.

A line is in one of two places. *Waiting*: not written yet; it must not be lost, so when too much
waits the senders wait too. *In doubt*: written, but perhaps never delivered, since a connection
dies in silence. It leaves doubt when bytes arrive over the same connection some time after it was
written: the connection was alive then. After a reconnect all that is in doubt is written again,
before what waits, in the old order. A line may so arrive twice, which the CLI allows: it drops a
prompt whose uuid it knows, and ignores a second answer.

It also leaves doubt with time. Both ends ping; a connection that was still taken for alive so many
seconds after the line was written had answered a ping that was sent behind it. So doubt is short,
and an `interrupt` of a minute ago is not sent again to hit a later turn.
"""

from __future__ import annotations

from collections import deque

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
        # Doubt is a matter of seconds; a limit all the same, for an end that never says a word.
        while self._unconfirmed_size > self._limit and len(self._unconfirmed) > 1:
            self._forget()
        return data

    def confirm(self, now: float) -> None:
        """Bytes came over the connection: what was written long enough ago has arrived."""
        self._confirm_until(now - self._proof_seconds)

    def connection_lost(self, now: float) -> None:
        """The connection is seen to be gone: until some time ago it was alive."""
        self._confirm_until(now - self._alive_seconds)

    def requeue(self) -> None:
        """A new connection: what was in doubt waits again, first and in order."""
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
