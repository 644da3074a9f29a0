"""HTTP on loopback, inside the caller's event loop: uvicorn without signals, and ASGI helpers.

`model` uses it. It does not know scripts and chooses no answer.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
import uvicorn

from quarterdeck.runtime.web_server import EmbeddedServer
from quarterdeck.testing import sse

# ASGI names and types its messages so.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_LIMIT = 64 * 1024 * 1024  # twenty times the largest prompt that a CLI was seen to send


class LoopServer(EmbeddedServer):
    """A server that reports its state."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()
        self.leave = anyio.Event()
        self.ended = anyio.Event()

    @classmethod
    def of(cls, app: App) -> LoopServer:
        """A server for an ASGI application that keeps quiet and lets go of its clients soon."""
        config = uvicorn.Config(
            app,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        return cls(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        # The original looks ten times a second whether it should exit: a tenth for every test.
        await self.on_tick(0)
        await self.leave.wait()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        finally:
            self.ended.set()


async def read_body(receive: Receive) -> bytes | None:
    """The whole body, or None when it is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > BODY_LIMIT:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def until_hang_up(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel `scope` when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def begin(send: Send, status: int, headers: dict[str, str]) -> None:
    """Send the status and the headers; the body follows."""
    rows = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": rows})


async def answer(
    send: Send, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    """Send a whole answer."""
    fixed = {"content-type": "application/json", "content-length": str(len(body))}
    await begin(send, status, fixed | (headers or {}))
    await send({"type": "http.response.body", "body": body})


async def refuse(
    send: Send, status: int, kind: str, message: str, headers: dict[str, str] | None = None
) -> None:
    """Send an error in the form of the API."""
    await answer(send, status, sse.error_body(kind, message), headers)


def request_headers(scope: Scope) -> dict[str, str]:
    """The headers by their names, which ASGI gives in small letters."""
    rows: list[tuple[bytes, bytes]] = scope["headers"]
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in rows}
