"""A link that shows what comes out of the link inside it, byte for byte.

For `--json`: stdout gets everything that the CLI says, as it comes, and nothing else. The bytes are
written before anybody here looks at them, so what we cannot read is there too.
"""

from __future__ import annotations

import os

from quarterdeck.cli.exits import OutputClosed
from quarterdeck.links.base import Dropped, Link, Resumed


class TeeLink:
    """The link inside, and a copy of what it receives on a file descriptor."""

    def __init__(self, inner: Link, descriptor: int) -> None:
        self._inner = inner
        self._descriptor = descriptor
        self.gone = False

    @property
    def resumable(self) -> bool:
        """As the link inside."""
        return self._inner.resumable

    async def receive(self) -> bytes | Dropped | Resumed:
        """As the link inside; the bytes are copied first."""
        item = await self._inner.receive()
        if isinstance(item, bytes) and not self.gone:
            try:
                write_all(self._descriptor, item)
            except OutputClosed:
                # The agent must go on reading, if only to end well; `run` looks at `gone`.
                self.gone = True
        return item

    async def send(self, data: bytes) -> None:
        """As the link inside."""
        await self._inner.send(data)

    async def end_input(self) -> None:
        """As the link inside."""
        await self._inner.end_input()

    async def close(self) -> None:
        """As the link inside."""
        await self._inner.close()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; blocks while the reader is slow. Raises `OutputClosed` if it is gone."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError as error:
        raise OutputClosed from error
