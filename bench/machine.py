"""A machine with any number of runs and no process at all: the load of the row about growth.

It speaks to the hub as a runner does, one WebSocket for itself and one for each run, and what its
runs say is made here. The hub cannot tell. A thousand real processes would measure the machine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bench import lines
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Header,
    Hello,
    Lines,
    Start,
    Started,
    Write,
    Written,
    frame,
    read_hub_frame,
)

NAME = "bench"


class Run:
    """One run: its socket, and the numbers of what it says."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.session = ""
        self.said = 0
        self.ready = asyncio.Event()

    async def say(self, *said: bytes) -> None:
        """Say lines."""
        first, self.said = self.said + 1, self.said + len(said)
        await self._send(Lines(first=first), *said)

    async def _send(self, header: Header, *said: bytes) -> None:
        await self._socket.send(frame(header, said))

    async def serve(self) -> None:
        """Greet the hub, and answer what it asks for."""
        await self._send(Started(pid=4_000_000, version="2.1.325", directory="/tmp"))
        await self._send(Written(upto=0))
        try:
            async for data in self._socket:
                assert isinstance(data, bytes)
                header, given = read_hub_frame(data)
                match header:
                    case Write(number=number):
                        await self._send(Written(upto=number))
                        await self._answer(given[0])
                    case Ack():
                        self.ready.set()
                    case _:
                        pass
        except ConnectionClosed:
            pass

    async def _answer(self, line: bytes) -> None:
        body = json.loads(line)
        if body["type"] == "control_request":
            answer = {"subtype": "success", "request_id": body["request_id"], "response": {}}
            await self.say(json.dumps({"type": "control_response", "response": answer}).encode())


class Machine:
    """The machine, and its runs by their sessions."""

    def __init__(self, url: str, token: str, tasks: TaskGroup) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tasks = tasks
        self.runs: dict[str, Run] = {}
        self._said = [line.encode() for line in lines.progress_lines(1000)]
        self._next = 0
        self.there = asyncio.Event()

    def connect(self, path: str) -> connect:
        """A socket to the hub."""
        return connect(
            self._url + path,
            additional_headers=self._headers,
            compression=None,
            max_size=None,
            proxy=None,
            ping_interval=None,
        )

    async def serve(self) -> None:
        """Take on what the hub asks for."""
        async with self.connect("/runner") as socket:
            hello = Hello(machine=NAME, runner="bench", protocol=PROTOCOL, version="0", pid=1)
            await socket.send(frame(hello))
            try:
                async for data in socket:
                    assert isinstance(data, bytes)
                    header, _ = read_hub_frame(data)
                    self.there.set()  # the first is its welcome
                    if isinstance(header, Start):
                        self._tasks.start_soon(self._run, header)
            except ConnectionClosed:
                pass

    async def _run(self, start: Start) -> None:
        async with self.connect(f"/runner/runs/{start.run}") as socket:
            run = self.runs[start.session] = Run(socket)
            await run.serve()

    def line(self) -> bytes:
        """Another line of about 300 bytes."""
        self._next += 1
        # Each message has an id of its own: the hub takes one that it knows for a repetition.
        unlike = f'"uuid":"{self._next:08x}-0000-4000-8000-000000000000"'.encode()
        line = self._said[self._next % len(self._said)]
        return line[: line.index(b'"uuid"')] + unlike + b"}"


@asynccontextmanager
async def machine(address: str, token: str) -> AsyncIterator[Machine]:
    """A machine at a hub, while the block runs."""
    async with anyio.create_task_group() as tasks:
        made = Machine(f"ws{address.removeprefix('http')}", token, tasks)
        tasks.start_soon(made.serve)
        yield made
        tasks.cancel_scope.cancel()
