"""Dial a WebSocket and keep dialling, as a CLI with `--sdk-url` does.

Owns the connection, its backoff and its budget. The runner uses it to reach the hub. It knows bytes
and close codes, and gets ids from its caller.

It has no task of its own: the reader reads the socket and dials again when the connection is lost.
So a link without a reader does not reconnect; data that is sent to it is kept.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Self

import anyio
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from quarterdeck.domain.addresses import is_loopback_url
from quarterdeck.domain.close_codes import PERMANENT, describe_code
from quarterdeck.domain.errors import LinkClosed, LinkRefused, UsageError
from quarterdeck.links.base import Dropped, Resumed
from quarterdeck.links.websocket.outbox import Outbox, OutboxLink

FRAME_LIMIT = 128 * 1024 * 1024
WRITE_SECONDS = 60.0
CLOSE_SECONDS = 3.0

# These mean that trying again with the same token and address is of no use.
REFUSALS = frozenset({401, 403, 410})


class Redial(msgspec.Struct, frozen=True, kw_only=True):
    """How to dial again. The defaults are the CLI's own."""

    base: float = 1.0  # the first pause; each next one is twice as long
    cap: float = 30.0
    jitter: float = (
        0.25  # each pause is this part longer or shorter, so that many do not come at once
    )
    budget: float = 600.0  # seconds without a connection before it gives up
    first: float = 10.0  # the same for the very first connection
    attempt: float = 10.0  # seconds for one attempt
    ping: float = 10.0  # between pings; without an answer until the next, the connection is dead

    def pause(self, number: int) -> float:
        """The pause before attempt `number`, counted from 0."""
        pause = min(self.base * 2.0 ** min(number, 30), self.cap)
        return pause * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311  (no secret)


class DialLink(OutboxLink):
    """A resumable link to the WebSocket at `url`. Make it with `DialLink.connect`."""

    def __init__(
        self,
        url: str,
        token: str,
        redial: Redial,
        last_request_id: Callable[[], str | None],
        outbox: Outbox,
    ) -> None:
        super().__init__(outbox)
        self._url = url
        self._token = token
        self._redial = redial
        self._last_request_id = last_request_id
        self._socket: ClientConnection | None = None
        self._lost_socket: ClientConnection | None = None
        self._attempts = 0
        self._down_since = time.monotonic()
        self._last_failure = "no attempt yet"
        self._last_code: int | None = None
        self._closing = asyncio.Event()

    @classmethod
    async def connect(
        cls,
        url: str,
        token: str,
        *,
        redial: Redial | None = None,
        last_request_id: Callable[[], str | None] = lambda: None,
        outbox: Outbox | None = None,
    ) -> Self:
        """Dial `url` with the bearer `token`; retries for `redial.first` seconds.

        `last_request_id` is called at each reconnect for the id of the last outgoing message; the
        other end gets it as `X-Last-Request-Id`. Raises `LinkRefused` when no connection can be
        made.
        """
        if not token or not token.isascii():
            raise UsageError("token: it must be a non-empty ASCII text")
        redial = redial or Redial()
        outbox = outbox or Outbox(alive_seconds=3 * redial.ping)
        link = cls(url, token, redial, last_request_id, outbox)
        while link._socket is None:
            await link._dial(redial.first)
            if link._over is not None:
                raise LinkRefused(link._over.reason)
        return link

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as we know."""
        return self._socket is not None

    async def receive(self) -> bytes | Dropped | Resumed:
        """The next frame's bytes; after a drop, `Resumed` as soon as there is a connection again.

        Cancelled, it loses nothing, in whatever it was doing.
        """
        while True:
            if self._lost_socket is not None:
                return await self._drain(self._lost_socket)
            self._check_over()
            if (socket := self._socket) is None:
                await self._dial(self._redial.budget)
                if self._socket is not None:
                    self._outbox.requeue()
                    return Resumed()
                continue
            if not self._outbox.empty and not self._send_order.locked():
                await self.flush()
            try:
                data = await socket.recv(decode=False)
            except ConnectionClosed as closed:
                self._connection_lost(socket, closed)
                continue
            self._outbox.confirm(time.monotonic())
            if data:
                return data

    async def close(self) -> None:
        """Leave: the other end sees 1000, and is not to expect us back."""
        self._end(LinkClosed("The link was closed.", close_code=1000))
        socket, self._socket = self._socket, None
        self._lost_socket = None
        if socket is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await socket.close()

    # --- within ---

    async def _dial(self, budget: float) -> None:
        """One pause and one attempt. Leaves a socket, or the link over, or neither: try again."""
        if self._attempts > 0 or self._last_code is not None:
            await self._pause(
                min(self._redial.pause(max(self._attempts - 1, 0)), self._seconds_left(budget))
            )
        if self._is_over():
            return
        self._attempts += 1
        headers = {"Authorization": f"Bearer {self._token}"}
        if (last := self._last_request_id()) is not None:
            headers["X-Last-Request-Id"] = last
        try:
            socket = await connect(
                self._url,
                additional_headers=headers,
                compression=None,
                max_size=FRAME_LIMIT,
                open_timeout=self._redial.attempt,
                ping_interval=self._redial.ping,
                ping_timeout=self._redial.ping,
                close_timeout=min(CLOSE_SECONDS, self._redial.ping),
                proxy=None if is_loopback_url(self._url) else True,
            )
        except InvalidURI as error:
            self._end(LinkClosed(f"{self._url!r} is not the address of a WebSocket: {error}"))
        except InvalidStatus as error:
            status = error.response.status_code
            self._report_failure(f"the answer was HTTP {status}", budget, final=status in REFUSALS)
        except (OSError, InvalidHandshake, EOFError) as error:
            self._report_failure(f"{type(error).__name__}: {error}", budget)
        else:
            if self._is_over():  # closed while we connected
                await socket.close()
                return
            self._socket = socket
            self._attempts = 0
            self._changed.set()

    async def _pause(self, seconds: float) -> None:
        self._closing.clear()
        with anyio.move_on_after(seconds):
            while not self._is_over():
                await self._closing.wait()

    def _is_over(self) -> bool:
        return self._over is not None

    def _report_failure(self, failure: str, budget: float, *, final: bool = False) -> None:
        self._last_failure = failure
        if final:
            self._end(
                LinkClosed(
                    f"{self._url} refused the connection: {failure}.", close_code=self._last_code
                )
            )
        elif self._seconds_left(budget) <= 0:
            self._end(
                LinkClosed(
                    f"No connection to {self._url} within {budget:g} s; the last error: {failure}.",
                    close_code=self._last_code,
                )
            )

    def _seconds_left(self, budget: float) -> float:
        return max(self._down_since + budget - time.monotonic(), 0.0)

    def _connection_lost(self, socket: ClientConnection, closed: ConnectionClosed) -> None:
        if self._socket is not socket:
            return
        self._socket, self._lost_socket = None, socket
        self._down_since = time.monotonic()
        self._outbox.connection_lost(self._down_since)
        self._last_code = closed.rcvd.code if closed.rcvd else 1006
        if self._last_code in PERMANENT:
            self._end(
                LinkClosed(
                    f"The connection was closed: {describe_code(self._last_code)}.",
                    close_code=self._last_code,
                )
            )

    async def _drain(self, socket: ClientConnection) -> bytes | Dropped:
        """The bytes that arrived before the connection was lost, then `Dropped`."""
        try:
            while not (data := await socket.recv(decode=False)):
                pass
        except ConnectionClosed:
            self._lost_socket = None
            if self._over is not None:
                raise self._over.copy() from None
            code = self._last_code
            assert code is not None
            return Dropped(f"The connection was lost: {describe_code(code)}.", code)
        return data

    def _end(self, closed: LinkClosed) -> None:
        if self._over is None:
            self._over = closed
        self._changed.set()
        self._closing.set()

    async def _flush(self) -> None:
        while (socket := self._socket) is not None:
            if (data := self._outbox.take(time.monotonic())) is None:
                return
            try:
                # Not cancellable: after a cancelled write it is unknown whether the data was sent.
                with anyio.CancelScope(shield=True), anyio.fail_after(WRITE_SECONDS):
                    await socket.send(data.decode())
            except ConnectionClosed as closed:
                self._connection_lost(socket, closed)
            except TimeoutError:
                socket.transport.abort()
                return
