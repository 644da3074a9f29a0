"""A web server embedded in a program.

Owns the settings that our servers share: limits for lines of tens of megabytes, no access log, no
signal handlers, a bounded shutdown. The hub's HTTP front and the endpoint for CLIs that dial an
`Agent` use it; below it is uvicorn.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import anyio
import uvicorn
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame
from websockets.http11 import Request

from quarterdeck.domain.errors import LinkRefused
from quarterdeck.runtime.connection_limits import (
    LARGE_MESSAGES,
    BoundedHttp,
    ConnectionGuard,
    ConnectionLimits,
)
from quarterdeck.runtime.off_loop import LARGE, large_turn
from quarterdeck.runtime.tasks import background_tasks

MAX_QUEUED_MESSAGES = 16
MAX_QUEUED_BYTES = 64 * 1024
"""Reading stops when this many messages wait for the app, or at one that is larger than this."""
FRAGMENT = 512 * 1024
"""Of a large message that we send: a millisecond or two."""
MAX_FRAGMENTS = 1024
"""Of one message. Our clients and the CLIs send a message whole."""
TOO_BIG = 1009


class PatientProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection that keeps reading while few messages wait for the app.

    uvicorn pauses reading after every message and resumes when the app takes it: two system calls
    for each. Without them a message that comes alone costs 20 to 50 µs less, of about 120. The
    method and the class are internal to uvicorn, so its version is bounded in pyproject.toml, and a
    test fails when the overridden code changes.

    On a limited path it also bounds a message, and all unfinished messages together.
    """

    guard: ConnectionGuard
    _limited = False
    _fragmented = False
    _pending = 0

    def handle_connect(self, event: Request) -> None:
        """Apply the limits of the path."""
        limits = self.guard.limits
        self._limited = event.path.startswith(limits.small_paths)
        self._fragmented = event.path.startswith(limits.fragmented_paths)
        if self._limited:
            self.conn.max_message_size = limits.small_message
        super().handle_connect(event)
        if self._limited and not self.close_sent:  # the app starts later
            self.scope["state"][LARGE_MESSAGES] = self._allow_large

    def data_received(self, data: bytes) -> None:
        """Take bytes, and count those of unfinished messages."""
        if self._limited:
            self._pending += len(data)
            self.guard.pending += len(data)
            if self.guard.pending > self.guard.limits.pending_bytes:
                self._fail("too many unfinished messages")
                return
        super().data_received(data)

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment."""
        if len(self.frames) >= MAX_FRAGMENTS:
            self._fail("too many fragments")
            return
        super().handle_cont(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was not finished."""
        self._note_finish()
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:  # its type is private to uvicorn
        """Send a message of the app; a large one in fragments, where the other end bears that.

        A message of tens of megabytes is encoded, framed and copied: in one go that would hold up
        everybody. The app sends one message at a time, and after one that is cancelled only closes.
        """
        if message["type"] == "websocket.send" and self._fragmented and self.handshake_complete:
            data = message.get("bytes")
            given = message.get("text") if data is None else data
            if given is not None and len(given) > LARGE:
                await self._send_fragments(given)
                return
        await super().send(message)

    async def _send_fragments(self, data: str | bytes) -> None:
        for start in range(0, len(data), FRAGMENT):
            part = data[start : start + FRAGMENT]
            await self.writable.wait()
            await large_turn(LARGE)
            if self.disconnected or self.close_sent:
                raise ClientDisconnected
            raw = part.encode() if isinstance(part, str) else part
            final = start + FRAGMENT >= len(data)
            try:
                if start:
                    self.conn.send_continuation(raw, final)
                elif isinstance(part, str):
                    self.conn.send_text(raw, final)
                else:
                    self.conn.send_binary(raw, final)
            except InvalidState as error:
                raise ClientDisconnected from error
            self.transport.write(b"".join(self.conn.data_to_send()))

    def _allow_large(self) -> None:
        self.conn.max_message_size = self.guard.limits.large_message

    def _note_finish(self) -> None:
        self.guard.pending -= self._pending
        self._pending = 0

    def _fail(self, reason: str) -> None:
        if self.close_sent or not self.handshake_complete:
            self.transport.abort()
            return
        self.frames = []
        self.conn.fail(TOO_BIG, reason)
        self.handle_parser_exception()

    def send_receive_event_to_app(self) -> None:
        """Queue a complete message, and pause reading if the queue is full or the message large."""
        self._note_finish()
        small = sum(map(len, self.frames)) <= MAX_QUEUED_BYTES
        if self.read_paused or not small or self.queue.qsize() >= MAX_QUEUED_MESSAGES:
            super().send_receive_event_to_app()
            return
        # uvicorn does not pause a connection that it takes for paused already.
        self.read_paused = True
        try:
            super().send_receive_event_to_app()
        finally:
            self.read_paused = False


Application = Callable[..., Awaitable[None]]
"""Any ASGI app, whatever names it has for the types of scope, receive and send."""

# A line can be tens of megabytes: an image, a file that was read.
FRAME_LIMIT = 128 * 1024 * 1024
PING_SECONDS = 20.0
KEEP_ALIVE_SECONDS = 75
"""An idle connection is closed after this time. HTTP clients reuse one for 5 to 60 s: a server
that closes it sooner races with their next request, which then fails."""
SHUTDOWN_SECONDS = 3
TICK_SECONDS = 1.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.001, 0.05
"""Between two looks, in seconds, whether connections and requests have ended."""
BACKLOG = 2048
ACCEPTED_AT_ONCE = 4
"""New connections in one round of the event loop, so that many at once delay nobody for long."""


def server_config(
    app: Application,
    *,
    ping_seconds: float = PING_SECONDS,
    pong_seconds: float,
    lifespan: Literal["on", "off"] = "off",
    tls: ssl.SSLContext | None = None,
    limits: ConnectionLimits | None = None,
) -> uvicorn.Config:
    """How an app is served. Who does not answer a ping within `pong_seconds` is taken for gone."""
    # uvicorn makes the objects of these classes itself: what they share is an attribute.
    shared = {"guard": ConnectionGuard(limits or ConnectionLimits())}
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=type("ServedHttp", (BoundedHttp,), shared),
        ws=type("ServedWebSocket", (PatientProtocol,), shared),
        ws_max_size=FRAME_LIMIT,
        ws_ping_interval=ping_seconds,
        ws_ping_timeout=pong_seconds,
        ws_per_message_deflate=False,  # four times the work; frames are many and small
        lifespan=lifespan,
        log_config=None,
        log_level="warning",  # its «info» is every path, and a path may name a session
        access_log=False,
        proxy_headers=False,  # the front decides which proxies to trust
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,  # so asyncio takes it; the kernel's is set after the start
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to this address. Raises `LinkRefused` when that fails."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise LinkRefused(f"cannot listen on {host}: {error.strerror}") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        hint = "; port 0 picks a free one" if error.errno == errno.EADDRINUSE else ""
        raise LinkRefused(f"cannot listen on {host} port {port}: {error.strerror}{hint}") from error
    return listener


@asynccontextmanager
async def run_server(config: uvicorn.Config, listener: socket.socket) -> AsyncIterator[None]:
    """Serve while the block runs. At the end requests have three seconds to finish."""
    server = _ProgramServer(config)
    listener.listen(BACKLOG)  # from here on connections are accepted by the kernel
    async with background_tasks() as tasks:
        tasks.start_soon(_run, server, listener)
        try:
            yield
        finally:
            server.leave()


class EmbeddedServer(uvicorn.Server):
    """A server in a program of its own: it leaves signal handlers alone, and ends without delay."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # The original sleeps for a tenth of a second, and again while anything is open.
        for listener in self.servers:
            listener.close()
        for each in sockets or ():
            each.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        with anyio.move_on_after(self.config.timeout_graceful_shutdown):
            pause = SHORTEST_PAUSE
            while state.connections or state.tasks:
                await anyio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        for task in list(state.tasks):
            task.cancel("the time to finish requests is over")
        await self.lifespan.shutdown()


class _ProgramServer(EmbeddedServer):
    """A server that ends when `leave` is called."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._exit_requested = anyio.Event()

    def leave(self) -> None:
        """Stop accepting; requests in progress may finish."""
        self.should_exit = True
        self._exit_requested.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    async def main_loop(self) -> None:
        # The original looks ten times a second whether it should exit.
        while not self.should_exit:
            await self.on_tick(0)  # among other things, the time in every answer's header
            with anyio.move_on_after(TICK_SECONDS):
                await self._exit_requested.wait()


async def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    # Shielded: a cancelled server would leave its connections and their tasks behind. It ends after
    # `leave`, within the time of its shutdown.
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[listener])
