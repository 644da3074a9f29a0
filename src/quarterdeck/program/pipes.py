"""The program's end: its lines on our stdin, and our stdout.

Owns these two descriptors: pipes, sockets and terminals in the event loop, files in a thread. It
tells when the program has ended its input, and when nobody reads our output any more.
"""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import suppress

import anyio.to_thread

HIGH_WATER = 8 * 1024 * 1024
_CHUNK = 256 * 1024


class _Output(asyncio.BaseProtocol):
    """Flow control of the output, and its end."""

    def __init__(self) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self.closed = asyncio.Event()

    def pause_writing(self) -> None:
        """The program does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """The program reads again."""
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's)
        """Nobody reads any more."""
        self.closed.set()
        self.writable.set()


class ProgramPipes:
    """stdin and stdout of a program. Make it with `open`, and end it with `finish`."""

    def __init__(self, in_: int, out: int) -> None:
        self._in = in_
        self._out = out
        self._output = _Output()
        self._writer: asyncio.WriteTransport | None = None
        self._input: asyncio.ReadTransport | None = None
        self._reader: asyncio.StreamReader | None = None

    @classmethod
    async def open(cls, in_: int = 0, out: int = 1) -> ProgramPipes:
        """Take over two descriptors."""
        pipes = cls(in_, out)
        loop = asyncio.get_running_loop()
        if not _is_file(out):
            file = os.fdopen(os.dup(out), "wb", buffering=0)
            pipes._writer, _ = await loop.connect_write_pipe(lambda: pipes._output, file)
            pipes._writer.set_write_buffer_limits(high=HIGH_WATER)
        if not _is_file(in_):
            reader = pipes._reader = asyncio.StreamReader(limit=HIGH_WATER)
            protocol = asyncio.StreamReaderProtocol(reader)
            file = os.fdopen(os.dup(in_), "rb", buffering=0)
            pipes._input, _ = await loop.connect_read_pipe(lambda: protocol, file)
        return pipes

    async def read(self) -> bytes:
        """Some bytes of the program; none: it has ended its input."""
        if self._reader is not None:
            return await self._reader.read(_CHUNK)
        return await anyio.to_thread.run_sync(os.read, self._in, _CHUNK)

    async def write(self, data: bytes) -> None:
        """Give the program bytes; waits while it does not read. Nothing happens when it is gone."""
        if self._writer is None:
            with suppress(OSError):
                await anyio.to_thread.run_sync(_write_all, self._out, data)
            return
        if not self._output.closed.is_set():
            self._writer.write(data)
            await self._output.writable.wait()

    async def wait_gone(self) -> None:
        """Wait until nobody reads our output."""
        await self._output.closed.wait()

    async def finish(self, seconds: float) -> None:
        """Write what is left and close the output: the program hears that the CLI has ended."""
        if self._input is not None:
            self._input.close()
        if self._writer is not None:
            self._writer.close()
            with anyio.move_on_after(seconds):
                await self._output.closed.wait()
        with suppress(OSError):
            os.close(self._out)


def _is_file(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode))


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
