"""A client of the stream on a bare socket, which reads only when it is told to."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec
from anyio.abc import SocketStream
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from quarterdeck.fronts.http import Role
from support.bounds import SECONDS
from support.front import Front, Json

MEGABYTE = 1024 * 1024


class RawClient:
    """A WebSocket on a bare socket, which reads only when it is told to."""

    def __init__(self, stream: SocketStream, protocol: ClientProtocol) -> None:
        self._stream = stream
        self._protocol = protocol
        self._frames: list[Json] = []
        self._parts: list[bytes] = []

    async def say(self, **frame: object) -> None:
        """Send a frame."""
        self._protocol.send_text(msgspec.json.encode(frame))
        for data in self._protocol.data_to_send():
            await self._stream.send(data)

    async def hear(self) -> Json:
        """The next frame; reads no more than is needed for it."""
        while not self._frames:
            with anyio.fail_after(SECONDS):
                self.take(await self._stream.receive(MEGABYTE))
        return self._frames.pop(0)

    def take(self, data: bytes) -> None:
        """Make frames of what was read."""
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                assert event.status_code == 101
            elif isinstance(event, Frame) and event.opcode in {Opcode.TEXT, Opcode.CONT}:
                self._parts.append(bytes(event.data))
                if event.fin:
                    self._frames.append(msgspec.json.decode(b"".join(self._parts)))
                    self._parts.clear()


@asynccontextmanager
async def raw_client(hub: Front) -> AsyncIterator[RawClient]:
    """A bare connection after its handshake."""
    protocol = ClientProtocol(parse_uri(f"ws://{hub.host}/api/stream"), max_size=None)
    request = protocol.connect()
    token = hub.access.make_token("the slow one", Role.VIEWER)
    request.headers = Headers(request.headers, authorization=f"Bearer {token}")
    protocol.send_request(request)
    name, _, port = hub.host.partition(":")
    async with await anyio.connect_tcp(name, int(port)) as stream:
        raw: socket.socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        for data in protocol.data_to_send():
            await stream.send(data)
        client = RawClient(stream, protocol)
        assert (await client.hear())["t"] == "hello"
        yield client
