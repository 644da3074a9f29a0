"""A receiver of webhooks on loopback: a real HTTP server that behaves as well as it is told to."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
from msgspec import Struct, field

from support.bounds import SECONDS
from support.waiting import until

Json = dict[str, Any]

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


def status(code: int, *headers: str) -> bytes:
    """An answer with this status and no body."""
    rows = "".join(f"{row}\r\n" for row in ("content-length: 0", *headers))
    return f"HTTP/1.1 {code} X\r\n{rows}\r\n".encode()


class Delivery(Struct):
    """A request as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def payload(self) -> Json:
        return msgspec.json.decode(self.body, type=Json)

    def is_signed_by(self, secret: str) -> bool:
        """Whether one of its signatures was made with this secret, by the convention's rule."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{made}" in self.headers["webhook-signature"].split(" ")


class Receiver(Struct):
    """What came, and what is answered next: bytes, `reset`, `hang`, or `flood`."""

    url: str = ""
    answers: deque[bytes | str] = field(default_factory=deque)
    """When there is none left the answer is 204."""
    usual: bytes | str = OK
    came: list[Delivery] = field(default_factory=list)
    flooded: int = 0

    async def until(self, count: int) -> list[Delivery]:
        """Wait for that many requests."""
        with anyio.fail_after(SECONDS):
            await until(lambda: len(self.came) >= count)
        return self.came

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        rows = (row.split(": ", 1) for row in head.split("\r\n")[1:] if row)
        headers = {name.lower(): value for name, value in rows}
        body = await reader.readexactly(int(headers["content-length"]))
        answer = self.answers.popleft() if self.answers else self.usual
        self.came.append(Delivery(headers, body))
        match answer:
            case bytes():
                writer.write(answer)
                await writer.drain()
            case "reset":
                writer.transport.abort()
            case "hang":
                await reader.read()  # until the other side gives up
            case "flood":
                writer.write(b"HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n")
                while True:
                    writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                    self.flooded += 65536
                    await writer.drain()
            case other:
                raise AssertionError(other)


@contextlib.asynccontextmanager
async def receiving(*answers: bytes | str, usual: bytes | str = OK) -> AsyncIterator[Receiver]:
    """A receiver, while the block runs."""
    receiver = Receiver(answers=deque(answers), usual=usual)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?key=hidden"
    try:
        yield receiver
    finally:
        server.close()
        await server.wait_closed()
