"""Limits for connections that cost a server something and bring nothing.

Owns how long a client may take for the headers of a request, how many connections may be open, and
how much of unfinished WebSocket messages is kept. When there are too many connections, one that
waits between requests is closed: of the address that has the most of them, the longest waiting
first. Without such a one the newest is refused. Below is uvicorn, whose classes are internal: its
version is bounded in pyproject.toml, and a test fails when the overridden code changes.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from quarterdeck.domain.structs import Value

logger = logging.getLogger(__name__)

MOST_DESCRIPTORS = 65_536
LOG_SECONDS = 10.0
MEGABYTE = 1024 * 1024
LARGE_MESSAGES = "quarterdeck.large_messages"
"""The member of a WebSocket's `state` that an app calls to allow its client large messages."""


class ConnectionLimits(Value):
    """What a server bears."""

    header_seconds: float = 20.0
    """The time for the headers of a request, from the connection or from their first byte on."""

    connections: int = 0
    """The number of connections; 0: what the number of file descriptors allows."""

    pending_bytes: int = 256 * MEGABYTE
    """Unfinished messages of all limited WebSockets together."""

    small_paths: tuple[str, ...] = ()
    """WebSockets whose path begins so are limited, since every person with a login may open one.
    The others belong to runners and CLIs, whose lines are long."""

    fragmented_paths: tuple[str, ...] = ()
    """WebSockets whose path begins so get large messages in fragments: those of programs that are
    known to put them together. A CLI gets each line whole."""

    small_message: int = MEGABYTE // 4
    """The size of one message on a limited WebSocket, unless its app allows more."""

    large_message: int = 32 * MEGABYTE
    """The size of one message where the app allows it: see `LARGE_MESSAGES`. More than any app
    takes, so that the app can say what its limit is."""


def allowed_connections() -> int:
    """How many connections the descriptors of this process allow; raises its soft limit first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            logger.warning("the limit of open files stays at %d", soft)
    if soft == resource.RLIM_INFINITY:
        soft = MOST_DESCRIPTORS
    # The rest is for the journal, processes, and connections that the hub opens itself.
    return max(32, soft * 3 // 4 - 32)


class ConnectionGuard:
    """The connections of one server, and which of them wait for a request."""

    def __init__(
        self, limits: ConnectionLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self.most = limits.connections or allowed_connections()
        self.pending = 0
        """Bytes of unfinished messages on limited WebSockets."""
        self._waiting: dict[str, dict[BoundedHttp, None]] = {}
        """By address, each in the order in which they began to wait."""
        self._count = 0
        self._clock = clock
        self._logged = -LOG_SECONDS

    def admit(self, connection: BoundedHttp, open_now: int) -> bool:
        """Whether a new connection may stay. Closes one that waits if there are too many."""
        if open_now > self.most or self._count >= max(1, self.most // 2):
            self._log(open_now)
            if not self._waiting:
                return False
            # Nobody loses a connection because another client opens many.
            most = max(self._waiting.values(), key=len)
            next(iter(most)).drop()
        self.waits(connection)
        return True

    def waits(self, connection: BoundedHttp) -> None:
        """A connection has no request any more."""
        waiting = self._waiting.setdefault(_address(connection), {})
        self._count += connection not in waiting
        waiting[connection] = None

    def works(self, connection: BoundedHttp) -> None:
        """A connection has a request, or is gone."""
        address = _address(connection)
        waiting = self._waiting.get(address, {})
        if connection in waiting:
            del waiting[connection]
            self._count -= 1
            if not waiting:
                del self._waiting[address]

    def _log(self, open_now: int) -> None:
        if self._clock() - self._logged >= LOG_SECONDS:
            self._logged = self._clock()
            logger.warning("%d connections are open: one that waits is closed", open_now)


def _address(connection: BoundedHttp) -> str:
    """Where a connection comes from; connections by a socket of this machine count as one."""
    return connection.client[0] if connection.client else ""


class BoundedHttp(H11Protocol):
    """One HTTP connection with a time limit for headers. A subclass has the server's `guard`."""

    guard: ConnectionGuard
    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit the connection, or close it."""
        super().connection_made(transport)
        if self.guard.admit(self, len(self.connections)):
            self._start_timer()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        self.guard.works(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; bound the time of headers that are not complete."""
        super().data_received(data)
        if bool(self.cycle) and not self.cycle.response_complete:
            self._stop_timer()
            self.guard.works(self)
        elif self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._start_timer()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """The headers are complete, and the connection is another protocol's."""
        self._stop_timer()
        self.guard.works(self)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if not self.transport.is_closing():
            self.guard.waits(self)
        super().on_response_complete()

    def drop(self) -> None:
        """Close the connection at once."""
        self.guard.works(self)
        self._stop_timer()
        self.transport.abort()

    def _start_timer(self) -> None:
        if self._header_timer is None:
            seconds = self.guard.limits.header_seconds
            self._header_timer = self.loop.call_later(seconds, self.drop)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
