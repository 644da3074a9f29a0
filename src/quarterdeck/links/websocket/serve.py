"""Serve a `CliEndpoint` on a port of its own, for an `Agent` without a hub.

Owns the server's settings. Above it stands the `Agent`; below it is uvicorn.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn

from quarterdeck.domain.errors import LinkRefused
from quarterdeck.links.websocket.asgi import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""Any ASGI app; a `CliEndpoint` is one."""

# A line can be tens of megabytes: an image, a file that was read.
FRAME_LIMIT = 128 * 1024 * 1024

# The CLI pings us and needs none. These are for us: a machine that vanished is noticed in 40 s,
# long before the CLI's 600 s of dialling are over.
PING_SECONDS = 20.0

SHUTDOWN_SECONDS = 3


class _QuietServer(uvicorn.Server):
    """A server inside somebody's program: that program's signals are not ours to take."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_endpoint(
    endpoint: Application, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[int]:
    """Serve `endpoint` while the block runs; gives the port, which is a free one by default.

    Raises `LinkRefused` when the address cannot be had. Close the links first: a connection that
    is still open at the end is closed with 1012, after which a CLI dials again.
    """
    listener = _bind(host, port)
    server = _QuietServer(
        uvicorn.Config(
            endpoint,
            http="h11",
            ws="websockets-sansio",
            ws_max_size=FRAME_LIMIT,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
            ws_per_message_deflate=False,  # four times the work, for a loopback
            lifespan="off",
            log_config=None,
            log_level="warning",  # its «info» is every path, and a path may name a session
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )
    # The port is listened to from here on, so a CLI may be started at once.
    listener.listen()
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_run, server, listener)
        try:
            yield listener.getsockname()[1]
        except Exception as error:  # noqa: BLE001  (raised below, as it is and not in a group)
            failure = error
        finally:
            server.should_exit = True
    if failure is not None:
        raise failure


async def _run(server: _QuietServer, listener: socket.socket) -> None:
    # Shielded: a cancelled server would leave its connections and their tasks behind. It ends by
    # itself when it is told to, within the time of its shutdown.
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[listener])


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise LinkRefused(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener
