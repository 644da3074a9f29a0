"""A TCP relay on loopback, for a network at fault: cut anywhere, stalled, full of rubbish."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from support.waiting import until


class Relay:
    """Carries bytes from `port` to `target`. Where nobody listens, a connection is reset."""

    def __init__(self, target: int = 0) -> None:
        self.port = 0
        self.target = target
        self.connections = 0
        self.openings: list[bytes] = []
        """The first bytes that came over each connection."""
        self.cuts = 0
        self.refusing = False
        self.chance: random.Random | None = None
        """While set, every new connection is cut at a byte that chance chooses, in each way."""
        self.rubbish: bytes | None = None
        """While set, it is put into what is carried next, wherever that is; then it is gone."""
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

    def heal(self) -> None:
        """Be a network without a fault; connections that are doomed are cut now."""
        self.flow()
        self.rubbish = None
        if self.chance is not None:
            self.chance = None
            self.cut()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            if self.refusing:
                raise ConnectionRefusedError
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        ends = (writer, far_writer)
        self._open |= {*ends}
        try:
            await asyncio.gather(
                self._carry(reader, far_writer, self._budget(), ends, self.openings),
                self._carry(far_reader, writer, self._budget(), ends),
            )
        finally:
            for end in ends:
                self._open.discard(end)
                end.transport.abort()

    def _budget(self) -> int | None:
        """As often a few bytes, which is in the handshake, as many frames."""
        return None if self.chance is None else int(10 ** self.chance.uniform(1.5, 5.0))

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        left: int | None,
        ends: tuple[asyncio.StreamWriter, ...],
        openings: list[bytes] | None = None,
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if openings is not None:
                    openings.append(data)
                    openings = None
                await self._flowing.wait()
                if self.rubbish is not None:
                    data, self.rubbish = self.rubbish + data, None
                if left is not None:
                    data, left = data[:left], left - len(data)
                writer.write(data)
                await writer.drain()
                if left is not None and left <= 0:
                    break
        if left is not None and left <= 0:
            self.cuts += 1
            await asyncio.sleep(0.001)  # so that the last bytes arrive before the reset does
            for end in ends:
                end.transport.abort()
        else:
            writer.transport.abort() if writer.is_closing() else writer.close()


@asynccontextmanager
async def relay_to(target: int = 0) -> AsyncIterator[Relay]:
    """A relay to a port of this machine, which may become another's; gone with the block."""
    relay = Relay(target)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        relay.flow()
        server.close()
        relay.cut()
        await server.wait_closed()
        await until(lambda: not relay._open)
