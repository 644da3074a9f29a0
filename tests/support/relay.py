"""A TCP relay between two ends that can be cut, stalled, or made to refuse: a network at fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from support.waiting import until


class Relay:
    """Carries bytes between whoever connects to `port` and the target port, both on loopback."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.connections = 0
        self.refusing = False
        self._target = target
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._open):
            writer.transport.abort()

    def stall(self) -> None:
        """Carry nothing more, and say nothing of it: what a machine does that vanished."""
        self._flowing.clear()

    def flow(self) -> None:
        """Carry bytes again."""
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refusing:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(
                self._carry(reader, far_writer),
                self._carry(far_reader, writer),
            )
        finally:
            for end in (writer, far_writer):
                self._open.discard(end)
                end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort() if writer.is_closing() else writer.close()


@asynccontextmanager
async def relay_to(target: int) -> AsyncIterator[Relay]:
    """A relay to a port of this machine, gone with the block."""
    relay = Relay(target)
    server = await asyncio.start_server(relay._serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        relay.flow()
        server.close()
        relay.cut()
        await server.wait_closed()
        await until(lambda: not relay._open)
