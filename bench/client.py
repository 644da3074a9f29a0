"""Clients of the hub's stream: one that understands what it is sent, and many that only count.

`Client` is the `websockets` library with a decoder behind it, as a program would use it. `Counting`
reads the bytes of a socket and looks for a word that each event has once: it costs so little that a
hundred of them measure the server and not themselves. It serves for every server alike.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect

CLOCK = re.compile(rb"@(\d{9,20})@")
"""The time at which an agent wrote a line; see `agent`."""

_decode = msgspec.json.Decoder().decode
WAIT_SECONDS = 120.0


class Client:
    """One connection: commands, and the frames that come."""

    def __init__(self, socket: ClientConnection, epoch: str) -> None:
        self._socket = socket
        self._count = 0
        self.epoch = epoch
        self.left: list[dict[str, Any]] = []
        """Frames that came while an answer was waited for."""

    @classmethod
    @asynccontextmanager
    async def connected(cls, address: str, token: str) -> AsyncIterator[Self]:
        """Connect, and take the greeting."""
        url = f"ws{address.removeprefix('http')}/api/stream"
        async with connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            max_size=None,
            max_queue=None,
            proxy=None,
        ) as socket:
            hello = _decode(await socket.recv())
            yield cls(socket, hello["epoch"])

    async def frame(self) -> dict[str, Any]:
        """The next frame."""
        if self.left:
            return self.left.pop(0)
        return await self._next()

    async def _next(self) -> dict[str, Any]:
        found: dict[str, Any] = _decode(await self._socket.recv(decode=False))
        return found

    async def send(self, frame: dict[str, Any]) -> str:
        """Send a frame; gives its id."""
        self._count += 1
        name = str(self._count)
        await self._socket.send(msgspec.json.encode({"id": name, **frame}).decode())
        return name

    async def ask(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Send a frame, and wait for its answer."""
        name = await self.send(frame)
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                answer = await self._next()
                if answer.get("id") == name:
                    if answer["t"] == "failed":
                        raise RuntimeError(f"the hub refused {frame}: {answer['problem']}")
                    return answer
                self.left.append(answer)

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Have the hub do something; gives the outcome."""
        answer = await self.ask({"t": "command", "command": command})
        outcome: dict[str, Any] = answer["outcome"]
        return outcome

    async def create(self, spec: dict[str, object]) -> str:
        """Make a session; gives its id."""
        outcome = await self.do({"command": "session.create", "spec": spec})
        return str(outcome["session"])

    async def prompt(self, session: str, content: str) -> None:
        """Send a prompt."""
        command = {"command": "prompt.send", "session": session, "content": content}
        await self.do({**command, "prompt": base64.b16encode(os.urandom(8)).decode()})

    async def follow(self, sessions: dict[str, int], *, live: bool = True) -> None:
        """Follow sessions, each after its number."""
        wish = {"t": "follow", "sessions": sessions, "live": live, "epoch": self.epoch}
        await self.ask(wish)

    async def unfollow(self) -> None:
        """Follow nothing any more."""
        await self.ask({"t": "unfollow", "all": True})

    async def until(self, kind: str, session: str | None = None) -> dict[str, Any]:
        """Read on to an event of this kind; gives it."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                frame = await self.frame()
                for stored in frame.get("events", ()) if frame["t"] == "events" else ():
                    if stored["event"]["kind"] == kind and session in (None, stored["session"]):
                        event: dict[str, Any] = stored
                        return event


class Counting(asyncio.Protocol):
    """Counts a word in all that a server sends; takes the times that agents wrote into lines."""

    def __init__(self, word: bytes, wanted: int, *, times: bool = False) -> None:
        self._word = word
        self._wanted = wanted
        self._times = times
        self._tail = b""
        self._frames = b""
        self._skip = 0
        self._transport: asyncio.Transport | None = None
        self.begun = 0
        """When the agent wrote the first line, in nanoseconds."""
        self.seen = 0
        self.ended = 0
        self.delays: list[float] = []
        """Milliseconds from an agent's write to here."""
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def connected(
        cls, url: str, token: str, word: bytes, wanted: int, *, times: bool = False
    ) -> Counting:
        """Connect, and wait for the first byte behind the handshake (or just the handshake)."""
        parts = urlsplit(url)
        loop = asyncio.get_running_loop()
        protocol = cls(word, wanted, times=times)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        await loop.create_connection(lambda: protocol, host, port)
        key = base64.b64encode(os.urandom(16)).decode()
        protocol.write(
            f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        async with asyncio.timeout(WAIT_SECONDS):
            await protocol.open
        return protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self._transport is not None
        self._transport.write(data)

    def say(self, frame: dict[str, object]) -> None:
        """Send a text frame. Its mask is zero, which leaves it as it is."""
        data = msgspec.json.encode(frame)
        head = struct.pack(">BBH", 0x81, 0x80 | 126, len(data)) + bytes(4)
        self.write(head + data)

    def follow(self, session: str, after: int, epoch: str) -> None:
        """Follow a session of a hub."""
        self.say(
            {"t": "follow", "id": "1", "sessions": {session: after}, "epoch": epoch, "live": False}
        )

    def expect(self, wanted: int) -> None:
        """Count from nothing again."""
        self.seen = self.begun = self.ended = 0
        self.delays = []
        self._wanted = wanted
        self.done = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Count."""
        if not self.open.done():
            if not data.startswith(b"HTTP/1.1 101"):
                self.open.set_exception(RuntimeError(f"no WebSocket: {data[:200]!r}"))
                return
            self.open.set_result(None)
            data = data.partition(b"\r\n\r\n")[2]
        now = time.monotonic_ns()
        self._pong(data)
        if self._times or not self.begun:
            for found in CLOCK.finditer(self._tail + data):
                if self._tail and found.end() <= len(self._tail):
                    continue
                self.begun = self.begun or int(found[1])
                if self._times:
                    self.delays.append((now - int(found[1])) / 1e6)
        seam = self._tail[-len(self._word) + 1 :] + data[: len(self._word) - 1]
        self.seen += data.count(self._word) + seam.count(self._word)
        self._tail = data[-64:] if len(data) >= 64 else (self._tail + data)[-64:]
        if self.seen >= self._wanted and not self.done.done():
            self.ended = now
            self.done.set_result(None)

    def _pong(self, data: bytes) -> None:
        """Walk from frame to frame, and answer the pings: who is silent is sent away.

        The hub wants to hear from the program itself too, and not only from its WebSocket.
        """
        data, at = self._frames + data, self._skip
        while at + 2 <= len(data):
            size, head = data[at + 1] & 0x7F, 2
            if size > 125:
                head = 4 if size == 126 else 10
                size = int.from_bytes(data[at + 2 : at + head], "big")
            ping = data[at] & 0x0F == 9
            if at + head + (size if ping else 0) > len(data):
                break
            if ping:
                payload = data[at + head : at + head + size]
                self.write(bytes((0x8A, 0x80 | size)) + bytes(4) + payload)
                self.say({"t": "beat"})
            at += head + size
        self._frames, self._skip = data[at:], max(at - len(data), 0)

    def connection_lost(self, error: Exception | None) -> None:
        """Nobody waits for ever."""
        for waited in (self.open, self.done):
            if not waited.done():
                waited.set_exception(RuntimeError(f"the server has gone: {error}"))
        # What nobody waits for is no fault of anybody.
        if self.done.done() and not self.done.cancelled():
            self.done.exception()

    def close(self) -> None:
        """Leave."""
        if self._transport is not None:
            self._transport.close()
