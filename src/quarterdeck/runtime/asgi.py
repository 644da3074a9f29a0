"""The corner of ASGI that a `CliEndpoint` needs, typed: scopes, headers, refusals, bodies.

Below `accept`; it knows HTTP and nothing of sessions.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping

import anyio
import msgspec

GONE_SECONDS = (
    1.0  # a refused client disconnects at once; otherwise the server closes the connection
)

Scope = Mapping[str, object]
Message = Mapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[dict[str, object]], Awaitable[None]]


class TooLarge(Exception):
    """A body has more bytes than are allowed."""


class Answer(msgspec.Struct, frozen=True):
    """A small JSON answer to a request."""

    status: int
    text: str

    @property
    def body(self) -> bytes:
        """The body."""
        return msgspec.json.encode({"ok" if self.status < 300 else "error": self.text})

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers; a 401 names the scheme."""
        made = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.body)).encode()),
        ]
        return [*made, (b"www-authenticate", b"Bearer")] if self.status == 401 else made


def path_of(scope: Scope) -> str:
    """The path, without the prefix under which the app is mounted."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", ""))
    return path.removeprefix(root) if root else path


def header(scope: Scope, name: bytes) -> str | None:
    """The first header with that name, which must be in lower case; None if absent."""
    headers = scope.get("headers")
    for key, value in headers if isinstance(headers, list | tuple) else ():
        if bytes(key).lower() == name:
            return bytes(value).decode("latin-1")
    return None


def has_token(scope: Scope, token: str) -> bool:
    """Whether the request carries that bearer token; takes as long for a wrong one."""
    scheme, _, given = (header(scope, b"authorization") or "").partition(" ")
    same = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
    return same and scheme.lower() == "bearer" and bool(token)


async def refuse_upgrade(answer: Answer, receive: Receive, send: Send) -> None:
    """Answer a WebSocket handshake with an HTTP status instead."""
    await receive()  # the connect, which must be taken first
    await send(
        {
            "type": "websocket.http.response.start",
            "status": answer.status,
            "headers": answer.headers,
        }
    )
    await send({"type": "websocket.http.response.body", "body": answer.body})
    # uvicorn calls the handshake complete when the connection is gone, and logs an error about an
    # app that returns before. It says «disconnect» for our answer, and again when it is gone.
    with anyio.move_on_after(GONE_SECONDS):
        for _ in range(2):
            await receive()


async def respond(answer: Answer, send: Send) -> None:
    """Answer an HTTP request."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """The whole body, or None when the client left; raises `TooLarge` past the limit."""
    declared = header(scope, b"content-length") or ""
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        assert isinstance(part, bytes)
        size += len(part)
        if size > limit:
            raise TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
