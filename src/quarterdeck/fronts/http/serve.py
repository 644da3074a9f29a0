"""Run the app on a port, inside somebody's event loop.

Owns the server's settings: limits for lines of tens of megabytes, no log of paths, TLS by files, an
end that is bounded. Signals belong to the program. Above are the commands; below is uvicorn.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import uvicorn

from quarterdeck.domain.errors import LinkRefused, UsageError
from quarterdeck.domain.structs import Fact
from quarterdeck.fronts.http.asgi import ASGIApp

FRAME_LIMIT = 128 * 1024 * 1024  # a runner passes on lines as they are, with images and files
PING_SECONDS = 20.0
PONG_SECONDS = 40.0  # a browser's tab that sleeps is late, and not gone
SHUTDOWN_SECONDS = 3
TICK_SECONDS = 1.0
BACKLOG = 2048


class Listen(Fact):
    """Where to listen. With a certificate the server speaks TLS only."""

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        """Refuse half a certificate."""
        if self.key is not None and self.certificate is None:
            raise UsageError("key: it needs a certificate")


class _EmbeddedServer(uvicorn.Server):
    """A server inside a program, whose signals are not ours to take. It ends when it is told to."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = anyio.Event()

    def leave(self) -> None:
        """End: take nothing new, give what is under way its time."""
        self.should_exit = True
        self._told.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        # The original looks ten times a second whether it should exit.
        while not self.should_exit:
            await self.on_tick(0)  # among other things, the time in every answer's header
            with anyio.move_on_after(TICK_SECONDS):
                await self._told.wait()


@asynccontextmanager
async def serve(app: ASGIApp, listen: Listen | None = None) -> AsyncIterator[str]:
    """Serve the app while the block runs; gives its address, `http://127.0.0.1:8765`.

    Port 0 takes a free one. Raises `LinkRefused` when the address cannot be had and `UsageError`
    when the certificate cannot be read. At the end requests have three seconds to finish.
    """
    listen = listen or Listen()
    config = _config(app, listen)
    listener = _bind(listen.host, listen.port)
    server = _EmbeddedServer(config)
    listener.listen(BACKLOG)  # from here on nobody is refused
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_run, server, listener)
        try:
            yield _address(listen, listener)
        except Exception as error:  # noqa: BLE001  (raised below, as it is and not in a group)
            failure = error
        finally:
            server.leave()
    if failure is not None:
        raise failure


async def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    # Shielded: a cancelled server would leave its connections and their tasks behind. It ends by
    # itself when it is told to, within the time of its shutdown.
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[listener])


def _config(app: ASGIApp, listen: Listen) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        interface="asgi3",
        http="h11",
        ws="websockets-sansio",
        ws_max_size=FRAME_LIMIT,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PONG_SECONDS,
        ws_per_message_deflate=False,  # four times the work; frames are many and small
        lifespan="on",
        log_config=None,
        log_level="warning",  # its «info» is every path, and a path may name a session
        access_log=False,
        proxy_headers=False,  # the gate knows which proxies are to be believed
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"certificate {listen.certificate}: {error}") from error
    return config


def _bind(host: str, port: int) -> socket.socket:
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
        raise LinkRefused(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def _address(listen: Listen, listener: socket.socket) -> str:
    scheme = "https" if listen.certificate else "http"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    port: int = listener.getsockname()[1]
    return f"{scheme}://{host}:{port}"
