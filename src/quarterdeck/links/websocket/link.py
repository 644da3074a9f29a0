"""A CLI that dials us, as a link that outlives its connections.

Owns one session's bytes in both directions, while connections come and go. `accept` checks who may
connect and hands connections over; the owner (`Agent` or hub) asks again for messages that were
lost. This module knows bytes and close codes.

After a drop the CLI keeps working and dials again. The link reports `Dropped`, keeps the data that
is sent meanwhile (see `outbox`), and reports `Resumed` when the CLI is back. An unfinished line
before that is void.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

import anyio

from quarterdeck.domain.close_codes import CLOSED, REPLACED, describe_code
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.base import Dropped, Resumed
from quarterdeck.links.inbox import Inbox
from quarterdeck.links.websocket.outbox import Outbox, OutboxLink

FIRST_SECONDS = 60.0  # a cold start of the CLI on a busy machine takes ten
GRACE_SECONDS = 600.0  # as long as CLIs from 2.1.62 on keep dialling; 2.1.37 gives up after 5
WRITE_SECONDS = 60.0  # longer than the server's pings take to notice a dead peer
CLOSE_SECONDS = 3.0

# A POST proves that the CLI lives, not that its socket does. But a CLI with a dead socket notices
# within two pings (20 s) and dials again. If it has not, earlier writes have arrived.
POST_PROOF_SECONDS = 25.0


# A socket that is not read answers no pings either, and the CLI then drops it. So there is room
# for much before a slow reader makes us stop reading.
HIGH_WATER = 64 * 1024 * 1024


class Connection(Protocol):
    """One WebSocket, as `accept` hands it over."""

    @property
    def ended(self) -> anyio.Event:
        """Set when it is over, however it ended."""

    async def write(self, data: bytes) -> None:
        """Write one frame. Raises `OSError` when the connection is gone."""

    async def end(self, code: int, reason: str) -> None:
        """Close it with a code. Never raises."""


class WebSocketLink(OutboxLink):
    """A resumable link to one CLI; connections are given to it by a `CliEndpoint`.

    `first` is how many seconds to wait for the first connection, `grace` how many for the next one
    after a drop.
    """

    def __init__(
        self,
        *,
        first: float = FIRST_SECONDS,
        grace: float = GRACE_SECONDS,
        high_water: int = HIGH_WATER,
        outbox: Outbox | None = None,
    ) -> None:
        super().__init__(outbox or Outbox())
        self._grace = grace
        self._timeout = first
        self._down_since = time.monotonic()
        self._last_code: int | None = None
        self._inbox = Inbox(high_water)
        self._connection: Connection | None = None
        self.last_request_id: str | None = None
        """The uuid of the last outgoing message, as the latest CLI reported it when it
        connected."""
        self._ever_connected = False
        self._begun = anyio.Event()
        self._post_order = asyncio.Lock()
        self._last_post = b""
        self._ends_announced = 0

    @property
    def connected(self) -> bool:
        """Whether a CLI is connected."""
        return self._connection is not None

    @property
    def over(self) -> bool:
        """Whether the link has ended."""
        return self._over is not None

    async def wait_connected(self) -> None:
        """Wait for the first connection; the caller bounds it.

        Raises `LinkClosed` if the link ends before there was one.
        """
        await self._begun.wait()
        if not self._ever_connected:
            super()._check_over()

    # --- a link, as any other ---

    async def receive(self) -> bytes | Dropped | Resumed:
        """The received bytes, or a report about the connection; waits for a CLI as long as the
        grace.
        """
        while True:
            if (item := self._inbox.take()) is not None:
                return item
            self._check_over()
            timeout = None if self._connection else self._seconds_left()
            with anyio.move_on_after(timeout):
                await self._inbox.wait()

    async def close(self) -> None:
        """End the session: a CLI from 2.1.62 on exits; 2.1.37 must be ended as a process.

        A CLI that is not connected learns of it when it dials again (see `accept`).
        """
        coded = CodedText(code=TextCode.LINK_CLOSED)
        self.fail(LinkClosed("The link was closed.", close_code=CLOSED, coded=coded))
        connection, self._connection = self._connection, None
        if connection is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await connection.end(CLOSED, "the session is over")
                await connection.ended.wait()

    def fail(self, closed: LinkClosed) -> None:
        """End the link for a reason that only its owner knows, such as the CLI's exit."""
        if self._over is None:
            self._over = closed
            self._begun.set()
            self._inbox.release()
            self._wake()

    # --- for the endpoint ---

    def announce_end(self) -> bool:
        """Whether a CLI that dials an ended link must still be told; True only once."""
        self._ends_announced += 1
        return self._ends_announced == 1

    def attach(self, connection: Connection, last_request_id: str | None) -> Connection | None:
        """Take a connection; gives back the one that it replaces, if that is still there."""
        replaced, self._connection = self._connection, connection
        if replaced is not None:
            self._report_drop(REPLACED)
        self.last_request_id = last_request_id
        if self._ever_connected:
            self._outbox.requeue()
            self._inbox.put(Resumed(last_request_id))
        self._timeout = self._grace
        self._ever_connected = True
        self._begun.set()
        self._wake()
        return replaced

    def detach(self, connection: Connection, code: int) -> None:
        """The connection is over. Nothing happens when another one has replaced it."""
        if self._connection is connection:
            self._connection = None
            self._down_since = time.monotonic()
            self._last_code = code
            self._outbox.connection_lost(self._down_since)
            self._report_drop(code)
            self._wake()

    @property
    def current(self) -> Connection | None:
        """The connection that counts."""
        return self._connection

    async def feed(self, connection: Connection, data: bytes) -> bool:
        """Take the bytes of a frame; waits while too much is unread. False: it was replaced."""
        await self._inbox.wait_for_room()
        if self._connection is not connection or self._over is not None:
            return False
        self._outbox.confirm(time.monotonic())
        self._inbox.put(data)
        return True

    async def feed_post(self, digest: bytes, lines: Sequence[bytes]) -> bool:
        """Take messages that came by POST, all or none, in the order of the POSTs; waits for room.

        The CLI sends one POST after the other, and the same one again when it got no answer: one
        with the digest of the last is known already, and False.
        """
        async with self._post_order:
            await self._inbox.wait_for_room()
            super()._check_over()
            if digest == self._last_post:
                return False
            self._last_post = digest
            self._outbox.confirm(time.monotonic() - POST_PROOF_SECONDS)
            self._inbox.put(b"".join(line + b"\n" for line in lines))
            return True

    # --- within ---

    def _report_drop(self, code: int) -> None:
        if self._over is None:  # otherwise it does not come back
            self._inbox.put(Dropped(f"The connection was lost: {describe_code(code)}.", code))

    async def _flush(self) -> None:
        while (connection := self._connection) is not None:
            if (data := self._outbox.take(time.monotonic())) is None:
                return
            try:
                # Not cancellable: after a cancelled write it is unknown whether the data was sent.
                with anyio.CancelScope(shield=True), anyio.fail_after(WRITE_SECONDS):
                    await connection.write(data)
            except OSError:  # also the TimeoutError of a peer that does not read
                self.detach(connection, 1006)
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await connection.end(1011, "the peer does not read")

    def _seconds_left(self) -> float | None:
        """Seconds until the grace is over; None while there is a connection."""
        if self._connection is not None:
            return None
        return max(self._down_since + self._timeout - time.monotonic(), 0.0)

    def _check_grace(self) -> None:
        if self._connection is None and self._over is None and self._seconds_left() == 0.0:
            if self._last_code is None:
                happened = f"No CLI connected within {self._timeout:g} s."
                code = TextCode.NO_CLI_CAME
            else:
                code = TextCode.CLI_NOT_BACK
                happened = (
                    f"The CLI did not reconnect within {self._timeout:g} s"
                    f" after {describe_code(self._last_code)}."
                )
            coded = CodedText(code=code, seconds=self._timeout, close_code=self._last_code)
            self.fail(LinkClosed(happened, close_code=self._last_code, coded=coded))

    async def _wait_for_room(self) -> None:
        with anyio.move_on_after(self._seconds_left()):
            await super()._wait_for_room()
        self._check_grace()

    def _check_over(self) -> None:
        self._check_grace()
        super()._check_over()

    def _wake(self) -> None:
        self._inbox.wake()
        self._changed.set()
