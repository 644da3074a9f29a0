"""Run the app on a port, in a running event loop.

Owns where it listens, and TLS by files. Above are the commands; below is the embedded server.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec import field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.asgi import ASGIApp
from quarterdeck.runtime.connection_limits import ConnectionLimits
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.runtime.tls import LOOK_SECONDS, CertificateFile, ServerTls
from quarterdeck.runtime.web_server import bind, run_server, server_config

PONG_SECONDS = 40.0  # a browser's tab that sleeps is late, and not gone
LIMITS = ConnectionLimits(
    small_paths=("/api/", "/ws"), fragmented_paths=("/api/", "/ws", "/runner", "/program")
)


class Listen(Value):
    """Where to listen. With a certificate the server speaks TLS only."""

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None
    named: Mapping[str, CertificateFile] = field(default_factory=dict)
    """Further certificates, for clients that want one of these names."""

    def __post_init__(self) -> None:
        """Refuse half a certificate."""
        if self.key is not None and self.certificate is None:
            raise UsageError("key: a key needs a certificate")


@asynccontextmanager
async def serve(
    app: ASGIApp,
    listen: Listen | None = None,
    limits: ConnectionLimits | None = None,
    *,
    look_seconds: float = LOOK_SECONDS,
) -> AsyncIterator[str]:
    """Serve the app while the block runs; gives its address, `http://127.0.0.1:8765`.

    Port 0 takes a free one. Raises `LinkRefused` when the address cannot be had and `UsageError`
    when the certificate cannot be read. Certificates that are replaced are used within
    `look_seconds`. At the end requests have three seconds to finish.
    """
    listen = listen or Listen()
    tls = _tls(listen)
    config = server_config(
        app,
        pong_seconds=PONG_SECONDS,
        lifespan="on",
        tls=None if tls is None else tls.context,
        limits=limits or LIMITS,
    )
    config.load()
    listener = bind(listen.host, listen.port)
    async with run_server(config, listener), background_tasks() as tasks:
        if tls is not None:
            tasks.start_soon(partial(tls.watch, seconds=look_seconds))
        yield _address(listen, listener)


def _tls(listen: Listen) -> ServerTls | None:
    if listen.certificate is None:
        return None
    file = CertificateFile(certificate=listen.certificate, key=listen.key)
    try:
        return ServerTls(file, listen.named)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"certificate {listen.certificate}: {error}") from error


def _address(listen: Listen, listener: socket.socket) -> str:
    scheme = "https" if listen.certificate else "http"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    port: int = listener.getsockname()[1]
    return f"{scheme}://{host}:{port}"
