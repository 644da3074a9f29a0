"""A way to a database that can stand still in the middle of a statement, as a stopped hub does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

SOCKET = ".s.PGSQL.5432"


class Stall:
    """Carries all bytes, until one connection is to stall."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._left: int | None = None
        self.stalled = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()

    def after(self, count: int) -> None:
        """The connection that next sends so many bytes carries no more of them."""
        self._left = count

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        far_reader, far_writer = await asyncio.open_unix_connection(self._target)
        sending = asyncio.create_task(self._send(reader, far_writer))
        try:
            with suppress(ConnectionError):
                while data := await far_reader.read(65536):
                    writer.write(data)
                    await writer.drain()
        except asyncio.CancelledError:
            pass  # by `close`
        finally:
            sending.cancel()
            writer.transport.abort()
            far_writer.transport.abort()
            self._serving.discard(task)

    async def close(self) -> None:
        """End all connections."""
        while self._serving:
            for task in self._serving:
                task.cancel()
            await asyncio.wait(self._serving)

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = 0
        with suppress(ConnectionError):
            while data := await reader.read(8192):
                sent = 0 if self._left is None else sent + len(data)
                writer.write(data)
                await writer.drain()
                if self._left is not None and sent >= self._left:
                    self._left = None
                    self.stalled.set()
                    await asyncio.Event().wait()
            writer.write_eof()


@asynccontextmanager
async def stalled_database(folder: Path) -> AsyncIterator[tuple[Stall, Path]]:
    """The way to the server in this folder, and the folder that stands for it."""
    with TemporaryDirectory(prefix="quarterdeck-stall-") as name:
        stall = Stall(folder / SOCKET)
        server = await asyncio.start_unix_server(stall.serve, Path(name) / SOCKET)
        try:
            yield stall, Path(name)
        finally:
            server.close()
            await stall.close()
