"""The corner of ASGI that the front's own layers need: types, headers, whole answers.

Below everything here that is not Litestar's. It knows HTTP and nothing of people or sessions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import anyio

from quarterdeck.runtime.connection_limits import LARGE_MESSAGES

# ASGI names and types its messages so.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

Headers = Sequence[tuple[bytes, bytes]]

GONE_SECONDS = 1.0


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Every header of that name (in small letters), in their order."""
    rows: list[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in rows if key.lower() == name]


def header_of(scope: Scope, name: bytes) -> str | None:
    """The only header of that name; None when there is none, or more than one."""
    found = headers_of(scope, name)
    return found[0] if len(found) == 1 else None


def path_of(scope: Scope) -> str:
    """The path, decoded."""
    path: str = scope["path"]
    return path


def allow_large_messages(scope: Scope) -> None:
    """Have the server take large messages of a WebSocket's client, from now on."""
    allow = scope.get("state", {}).get(LARGE_MESSAGES)
    if allow is not None:
        allow()


async def respond(
    send: Send, status: int, body: bytes, content_type: str, headers: Headers = ()
) -> None:
    """Send a whole answer to an HTTP request."""
    rows = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": rows})
    await send({"type": "http.response.body", "body": body})


async def refuse_upgrade(
    receive: Receive, send: Send, status: int, body: bytes, content_type: str, headers: Headers = ()
) -> None:
    """Answer a WebSocket's handshake with an HTTP status instead."""
    await receive()  # the connect, which must be taken first
    rows = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "websocket.http.response.start", "status": status, "headers": rows})
    await send({"type": "websocket.http.response.body", "body": body})
    # To uvicorn, who returns while the connection is there has not answered: an error in its log.
    # It says «disconnect» for our answer, and again when the connection is gone.
    with anyio.move_on_after(GONE_SECONDS):
        for _ in range(2):
            await receive()
