"""A TCP relay that cuts each connection at a byte that chance chooses, in either direction."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from support.waiting import until


class CuttingRelay:
    """Carries bytes to the target port on loopback; with a `chance`, never very many."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.cuts = 0
        self.chance: random.Random | None = None
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        ends = (writer, far_writer)
        self._open |= {*ends}
        try:
            await asyncio.gather(
                self._carry(reader, far_writer, self._budget(), ends),
                self._carry(far_reader, writer, self._budget(), ends),
            )
        finally:
            for end in ends:
                self._open.discard(end)
                end.transport.abort()

    def _budget(self) -> int | None:
        """As often a few bytes, which is in the handshake, as many frames."""
        return None if self.chance is None else int(10 ** self.chance.uniform(1.5, 5.3))

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        left: int | None,
        ends: tuple[asyncio.StreamWriter, ...],
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if left is not None and self.chance is not None:
                    data, left = data[:left], left - len(data)
                writer.write(data)
                await writer.drain()
                if left is not None and left <= 0:
                    self.cuts += 1
                    # A moment, so that the last bytes arrive before the reset does.
                    await asyncio.sleep(0.001)
                    for end in ends:
                        end.transport.abort()
                    return
        writer.close()


@asynccontextmanager
async def cutting_relay(target: int) -> AsyncIterator[CuttingRelay]:
    """A relay to a port of this machine, gone with the block."""
    relay = CuttingRelay(target)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.cut()
        await server.wait_closed()
        await until(lambda: not relay._open)
