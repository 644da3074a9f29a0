"""The socket of a run at the hub: frames in order, lines numbered in both directions.

Owns what is on its way to a run, and what its machine may forget. `runners` and `programs` are
above: they know who is at the other end. It looks into no line.
"""

from __future__ import annotations

import asyncio

import anyio
import msgspec

from quarterdeck.protocol.runner_frames import (
    Ack,
    Header,
    RunnerHeader,
    Write,
    frame,
    read_runner_frame,
)
from quarterdeck.runtime.asgi import Receive, Scope, Send, header

CLOSE_SECONDS = 2.0
ACK_SECONDS = 0.25
ACK_LINES = 64
"""What we have is said after so long, or when it is so many lines more than was said last. A runner
only keeps them until then; to say it line by line would cost both sides as much as the line."""


class Wire:
    """One socket: frames go out in the order in which they were given."""

    def __init__(self) -> None:
        self.closed = anyio.Event()
        self._out: asyncio.Queue[bytes | int] = asyncio.Queue()

    def put(self, header: Header, *lines: bytes) -> None:
        """Send a frame, soon."""
        self._out.put_nowait(frame(header, lines))

    def close(self, code: int) -> None:
        """Close the socket after what was given before."""
        self._out.put_nowait(code)

    async def end(self, code: int) -> None:
        """Close the socket, and wait for that a little."""
        self.close(code)
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.closed.wait()

    async def pump(self, send: Send) -> None:
        """Send what is given, until told to close."""
        try:
            while True:
                item = await self._out.get()
                if isinstance(item, int):
                    await send({"type": "websocket.close", "code": item})
                    return
                await send({"type": "websocket.send", "bytes": item})
        except OSError:
            pass  # nobody is there any more; who reads hears of it
        finally:
            self.closed.set()


class NumberedPort:
    """A session's hold on a run whose lines are numbered by its machine."""

    def __init__(self, run: str, session: str) -> None:
        self.run = run
        self.session = session
        self.upto = 0
        self.wire: Wire | None = None
        self.waiting: dict[int, bytes] = {}
        self.lost = False
        self._synced = False
        self._given = 0
        self._acknowledged = 0
        self._timer: asyncio.TimerHandle | None = None

    def write(self, number: int, line: bytes) -> None:
        if number <= self._given:
            return
        self._given = number
        self.waiting[number] = line
        if self.wire is not None and self._synced:
            self.wire.put(Write(number=number), line)

    def acknowledge(self, upto: int) -> None:
        self.upto = max(self.upto, upto)
        if self.upto - self._acknowledged >= ACK_LINES:
            self.send()
        elif self._timer is None and self.upto > self._acknowledged:
            self._timer = asyncio.get_running_loop().call_later(ACK_SECONDS, self.send)

    def send(self) -> None:
        """Say what we have, if it is news and the machine is connected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.wire is not None and self.upto > self._acknowledged:
            self._acknowledged = self.upto
            self.wire.put(Ack(upto=self.upto))

    def unwritten(self) -> dict[int, bytes]:
        return self.waiting

    def connect(self, wire: Wire) -> None:
        """Its socket is there: say what we have, and wait to hear what was written."""
        self.wire = wire
        self._synced = False
        self._acknowledged = self.upto
        wire.put(Ack(upto=self.upto))

    def note_written(self, upto: int) -> None:
        """Everything up to this number is with the CLI; the rest follows, once."""
        for number in [number for number in self.waiting if number <= upto]:
            del self.waiting[number]
        if not self._synced and self.wire is not None:
            self._synced = True
            for number, line in sorted(self.waiting.items()):
                self.wire.put(Write(number=number), line)


class Gone(Exception):
    """The socket has ended."""


async def next_frame(receive: Receive) -> tuple[RunnerHeader, list[bytes]]:
    """The next frame. Raises `Gone`, or `msgspec.DecodeError` for what is none."""
    message = await receive()
    if message["type"] == "websocket.disconnect":
        raise Gone
    match message:
        case {"bytes": bytes(data)}:
            return read_runner_frame(data)
        case {"text": str(text)}:
            return read_runner_frame(text.encode())
        case _:
            raise msgspec.DecodeError("an empty frame")


def bearer(scope: Scope) -> str:
    """The token that a connection brings; empty for none."""
    kind, _, token = (header(scope, b"authorization") or "").partition(" ")
    return token if kind.lower() == "bearer" else ""


async def not_here(send: Send) -> None:
    """Answer a request to an address that is for WebSockets only."""
    await send({"type": "http.response.start", "status": 426, "headers": []})
    await send({"type": "http.response.body", "body": b"a runner's socket\n"})
