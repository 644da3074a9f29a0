"""The bytes of stdin and stdout, without threads and without changing the descriptors.

Another process may share the descriptors, so that they stay blocking: a read or a write happens
only where it cannot wait.
"""

from __future__ import annotations

import os
import select

import anyio
import anyio.lowlevel

from quarterdeck.domain.errors import LinkClosed

CHUNK = 1 << 16
SURE = select.PIPE_BUF
"""Bytes that a pipe takes at once when it can be written to."""


class StdioPipe:
    """A descriptor to read from, and one to write to."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink

    async def receive(self) -> bytes:
        """The next bytes; none at the end."""
        try:
            await anyio.wait_readable(self._source)
        except PermissionError:
            await anyio.lowlevel.checkpoint()  # a file: it never waits
        try:
            return os.read(self._source, CHUNK)
        except OSError:  # a terminal that was closed
            return b""

    async def send(self, data: bytes) -> None:
        """Send all of them. Raises `LinkClosed`."""
        view = memoryview(data)
        while view:
            try:
                await anyio.wait_writable(self._sink)
            except PermissionError:
                await anyio.lowlevel.checkpoint()
            try:
                view = view[os.write(self._sink, view[:SURE]) :]
            except OSError as error:
                raise LinkClosed(f"the editor does not read any more: {error}") from error
