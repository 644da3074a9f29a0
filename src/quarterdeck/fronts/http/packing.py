"""Answers of the API, compressed for clients that take it.

Owns which answers: whole ones to `GET`, of JSON, and not too small. An answer that comes in pieces
is sent as it comes, and an answer to a command may hold a secret: neither is compressed. Above is
the app; it knows nothing of routes.
"""

from __future__ import annotations

import zlib
from functools import partial

import anyio.to_thread

from quarterdeck.fronts.http.asgi import ASGIApp, Message, Receive, Scope, Send, header_of

_WORTH_PACKING = 1024
_IN_THREAD = 64 * 1024
"""Bytes. Compressing more takes longer than a thread costs; the interpreter is free meanwhile."""
_LEVEL = 5
_GZIP = 31
"""The window of zlib, with the header of gzip."""


async def packed(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with `app`, compressed where that helps."""
    takes = "gzip" in (header_of(scope, b"accept-encoding") or "")
    if scope["type"] != "http" or scope["method"] != "GET" or not takes:
        await app(scope, receive, send)
        return
    await app(scope, receive, _Packing(send).send)


class _Packing:
    """One answer. Its head is held back until its body shows whether it comes whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._head: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if _is_json(message):
                self._head = message
            else:
                await self._send(message)
            return
        head, self._head = self._head, None
        if head is not None:
            message = await _pack(head, message)
            await self._send(head)
        await self._send(message)


def _is_json(head: Message) -> bool:
    have = {bytes(name).lower(): bytes(value) for name, value in head["headers"]}
    kind = have.get(b"content-type", b"")
    return head["status"] == 200 and b"json" in kind and b"content-encoding" not in have


async def _pack(head: Message, message: Message) -> Message:
    """The message with its body compressed, and the head changed to fit."""
    body: bytes = message.get("body", b"")
    if message.get("more_body", False) or len(body) < _WORTH_PACKING:
        return message
    if len(body) < _IN_THREAD:
        small = compressed(body)
    else:
        small = await anyio.to_thread.run_sync(partial(compressed, body))
    kept = [row for row in head["headers"] if bytes(row[0]).lower() != b"content-length"]
    head["headers"] = [
        *kept,
        (b"content-encoding", b"gzip"),
        (b"vary", b"accept-encoding"),
        (b"content-length", str(len(small)).encode()),
    ]
    return {**message, "body": small}


def compressed(body: bytes) -> bytes:
    """A body in the format of gzip."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(body) + packer.flush()
