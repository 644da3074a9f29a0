"""JSON of the API is sent compressed to clients that accept it.

Owns which answers are: whole ones to `GET` that are worth it. An answer to a command may hold a
secret, and passes as it is, as a stream does. Files of the web app are compressed once, by `pages`.
Compression is a courtesy: while enough answers are being compressed, a further one is sent as it
is, so that nobody waits for the answers of others. A page of another site cannot have answers of
the API made for a person (they need the page key), so their length tells it nothing. Above is the
gate.
"""

from __future__ import annotations

import gzip

import anyio
import anyio.to_thread

from quarterdeck.fronts.http.asgi import Message, Scope, Send, header_of

LEAST = 1024
"""Less is not worth it, in bytes."""
IN_THREAD = 8 * 1024
"""More would hold up the event loop for a noticeable part of a millisecond."""
AT_ONCE = 2
"""Answers that are compressed in threads at the same time, of all people together."""
LEVEL = 3


class Packer:
    """Compresses answers in threads of its own, and counts them."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._busy = 0

    async def pack(self, body: bytes) -> bytes | None:
        """The body, compressed; None while enough others are."""
        if len(body) <= IN_THREAD:
            return _pack(body)
        if self._busy >= AT_ONCE:
            return None
        self._busy += 1
        try:
            return await anyio.to_thread.run_sync(_pack, body, limiter=self._limiter)
        finally:
            self._busy -= 1


def compress_send(scope: Scope, send: Send, packer: Packer) -> Send:
    """A `send` that compresses the answer to this request, if that is wanted and worth it."""
    if scope["method"] != "GET" or not _accepts(header_of(scope, b"accept-encoding") or ""):
        return send
    start: Message | None = None

    async def send_compressed(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
            return
        begun, start = start, None
        if begun is None:
            await send(message)  # not the first piece
            return
        body = message.get("body", b"")
        whole = not message.get("more_body", False)
        if whole and len(body) >= LEAST and _is_json(begun):
            packed = await packer.pack(body)
            if packed is not None:
                begun = {**begun, "headers": _headers(begun, len(packed))}
                message = {**message, "body": packed}
        await send(begun)
        await send(message)

    return send_compressed


def _accepts(value: str) -> bool:
    """Whether a client accepts gzip; `gzip;q=0` says that it does not."""
    for part in value.split(","):
        name, _, quality = part.strip().partition(";")
        if name.strip().lower() == "gzip":
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def _is_json(start: Message) -> bool:
    headers = {bytes(name).lower(): bytes(value) for name, value in start["headers"]}
    kind = headers.get(b"content-type", b"")
    return b"json" in kind and b"content-encoding" not in headers


def _pack(body: bytes) -> bytes:
    return gzip.compress(body, LEVEL, mtime=0)


def _headers(start: Message, length: int) -> list[tuple[bytes, bytes]]:
    kept = [
        (name, value)
        for name, value in start["headers"]
        if bytes(name).lower() not in {b"content-length", b"vary"}
    ]
    return [
        *kept,
        (b"content-encoding", b"gzip"),
        (b"content-length", str(length).encode()),
        (b"vary", b"accept-encoding"),
    ]
