"""Serve a `CliEndpoint` on a port of its own, for an `Agent` without a hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quarterdeck.runtime.web_server import (
    PING_SECONDS,
    Application,
    bind,
    run_server,
    server_config,
)


@asynccontextmanager
async def serve_endpoint(
    endpoint: Application,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ping_seconds: float = PING_SECONDS,
) -> AsyncIterator[int]:
    """Serve `endpoint` while the block runs; gives the port, which is a free one by default.

    Raises `LinkRefused` when the address cannot be had. Close the links first: a connection that
    is still open at the end is closed with 1012, after which a CLI dials again.
    """
    # The CLI pings us and needs none. These are for us: a machine that vanished is noticed in 40 s,
    # long before the CLI's 600 s of dialling are over.
    config = server_config(endpoint, ping_seconds=ping_seconds, pong_seconds=ping_seconds)
    listener = bind(host, port)
    async with run_server(config, listener):
        yield listener.getsockname()[1]
