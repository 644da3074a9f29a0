"""A runner's end of its sockets to a hub, in the hand of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from quarterdeck.hub.programs import Programs
from quarterdeck.hub.runners import Runners
from quarterdeck.protocol.runner_frames import Header, HubHeader, frame, read_hub_frame
from support.bounds import SECONDS


class Socket:
    """A runner's end of a socket."""

    def __init__(self) -> None:
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._out: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def say(self, header: Header, *lines: bytes) -> None:
        """Send a frame."""
        self.say_bytes(frame(header, lines))

    def say_bytes(self, data: bytes) -> None:
        """Send anything."""
        self._in.put_nowait({"type": "websocket.receive", "bytes": data})

    async def hear(self) -> HubHeader:
        """The next frame's header."""
        return (await self.hear_frame())[0]

    async def hear_frame(self) -> tuple[HubHeader, list[bytes]]:
        """The next frame."""
        with anyio.fail_after(SECONDS):
            message = await self._out.get()
        return read_hub_frame(message["bytes"])

    async def closed(self) -> int:
        """The code with which the hub closes; passes over what it said before."""
        with anyio.fail_after(SECONDS):
            while (message := await self._out.get())["type"] != "websocket.close":
                pass
        code: int = message["code"]
        return code

    @asynccontextmanager
    async def on(
        self,
        runners: Runners | Programs,
        path: str,
        token: str = "right",
        *,
        client: str | None = None,
        **headers: str,
    ) -> AsyncIterator[None]:
        """Be connected while the block runs; from an address, if one is given."""
        self._in.put_nowait({"type": "websocket.connect"})
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": path,
            "headers": [
                (b"authorization", f"Bearer {token}".encode()),
                *(
                    (name.replace("_", "-").encode(), text.encode())
                    for name, text in headers.items()
                ),
            ],
            "client": client and (client, 1),
        }

        async def send(message: Any) -> None:
            if message["type"] != "websocket.accept":
                self._out.put_nowait(message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runners, scope, self._in.get, send)
            yield
            self._in.put_nowait({"type": "websocket.disconnect"})
