"""The interface of a link: a pipe for bytes between us and one CLI.

A link carries NDJSON but does not look into it: it knows bytes, process exits and close codes,
never a message. The `Agent` or the hub feeds the bytes to `wire`.

A link has one reader and any number of writers. `receive` returns chunks as they arrive, split
anywhere. A link that can reconnect (a CLI that dials a WebSocket) reports `Dropped` and `Resumed`,
so that its owner knows when the CLI cannot be reached, and can ask again for messages that may have
been lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Protocol, Self

import msgspec

from quarterdeck.domain.errors import UsageError


class Dropped(msgspec.Struct, frozen=True):
    """The connection is lost and may come back: `Resumed` or `LinkClosed` follows.

    It comes once for each loss, after all bytes that had arrived. Until the connection is back,
    only messages that a CLI posts can arrive. `reason` is a sentence for people.
    """

    reason: str
    close_code: int | None = None


class Resumed(msgspec.Struct, frozen=True):
    """The connection was lost and is there again; bytes may have been lost in both directions.

    A link says `Dropped` before it, also when it learns of both at once.

    `last_request_id` is the `X-Last-Request-Id` header of the CLI's reconnect: the uuid of the
    last message that it wanted to send. A uuid that we never saw means that messages were lost.
    """

    last_request_id: str | None = None


class Closing(ABC):
    """What closes itself at the end of an `async with`, however that ends."""

    @abstractmethod
    async def close(self) -> None:
        """End it. Never raises; safe to call twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()


class Link(Protocol):
    """A pipe to one CLI. Every wait in it is bounded by the caller or by the link's own limits."""

    @property
    def resumable(self) -> bool:
        """Whether `receive` may return `Resumed`, so that received messages must be remembered.

        A link that is not resumable does not return `Dropped` either: it ends.
        """

    async def receive(self) -> bytes | Dropped | Resumed:
        """Wait for the next bytes. Raises `LinkClosed` when no more can arrive."""

    async def send(self, data: bytes) -> None:
        """Write whole lines, in order; waits while the other end is slow.

        Raises `LinkClosed` when the link has ended. While a resumable link is down, the data is
        kept and sent after the reconnect. Empty data is ignored.
        """

    async def end_input(self) -> None:
        """Tell the CLI that no more input follows (its stdin ends). Safe to call twice."""

    async def close(self) -> None:
        """End the link and everything it owns, in bounded time. Never raises; safe to call
        twice.
        """


def check_whole_lines(data: bytes) -> None:
    """Raise `UsageError` unless `data` is empty or consists of whole, non-empty lines.

    The CLI does not handle a line before its newline, and 2.1.37 exits on an empty line.
    """
    if data and not data.endswith(b"\n"):
        raise UsageError("a link sends whole lines; the last one has no newline")
    if data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data:
        raise UsageError("a link sends no empty lines: some versions of the CLI exit on them")


def check_text_lines(data: bytes) -> None:
    """Like `check_whole_lines`, for links with text frames: the lines must also be UTF-8."""
    check_whole_lines(data)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise UsageError("a line that is not UTF-8 cannot be sent as text") from error
