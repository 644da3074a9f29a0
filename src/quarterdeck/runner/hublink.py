"""The connection to the hub: dial a WebSocket, send and receive frames.

Owns addresses, the token's header, frames and close codes. The `Runner` and each `Run` are above
and decide when to dial; the `websockets` client is below. It knows nothing of runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import anyio
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from quarterdeck.domain.addresses import is_loopback_url
from quarterdeck.domain.close_codes import describe_code
from quarterdeck.domain.errors import LinkClosed, LinkError, LinkRefused, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.links.websocket.dial import Redial
from quarterdeck.protocol.runner_frames import Header, HubHeader, frame, read_hub_frame
from quarterdeck.runner.limits import FRAME_LIMIT, KIB
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.runtime.off_loop import off_loop

CLOSE_SECONDS = 3.0
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}

# A hub on this machine restarts within a second or two, and an attempt is cheap.
LOOPBACK = Redial(base=0.2, cap=3.0, ping=20.0)
FAR = Redial(base=1.0, cap=30.0, ping=20.0)

_PING_PATIENCE = 3
"""A pong waits behind data that is being sent. With fragments of this size and three ping
intervals, a link of 100 KB/s is not taken for a dead one, however long the line."""
_FRAGMENT = 64 * KIB


class UnreadableStart(Value):
    """A `start` whose run can be read but not the rest, as from a newer hub."""

    run: str
    reason: str


class _StartHead(msgspec.Struct, tag_field="t", tag="start"):
    run: str


class Hub:
    """The addresses of the hub, which of them is used, and whether it is connected.

    Several addresses are those of several hubs. When one is lost the next one is tried, and the
    runs dial where their machine is connected.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | Path,
        redial: Redial | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self.urls = tuple(map(_websocket_url, [url] if isinstance(url, str) else url))
        if not self.urls:
            raise UsageError("hub: an address is missing")
        self._at = 0
        self.connected = asyncio.Event()
        """Set while the machine's socket is open. Runs dial only then: one retries, not all."""
        self.moved = asyncio.Event()
        """Set when the machine is connected to another hub: the runs then dial that one. Each hub
        has its own."""
        self._greeted_by: str | None = None
        loopback = all(map(is_loopback_url, self.urls))
        self.redial = redial or (LOOPBACK if loopback else FAR)
        self._token = token
        self._ca_file = ca_file
        self._proxy: Literal[True] | None = None if loopback else True

    @property
    def url(self) -> str:
        """The address that is tried now."""
        return self.urls[self._at]

    def note_hello(self, hub: str) -> None:
        """The machine is connected to the hub with this id."""
        if self._greeted_by not in {None, hub}:
            self.moved.set()
            self.moved = asyncio.Event()
        self._greeted_by = hub
        self.connected.set()

    def next_address(self) -> bool:
        """Try the next address from now on; whether all were tried since the first one was."""
        self._at = (self._at + 1) % len(self.urls)
        return self._at == 0

    async def dial(self, path: str) -> HubSocket:
        """One attempt. Raises `LinkRefused`."""
        try:
            socket = await connect(
                self.url + path,
                additional_headers={"Authorization": f"Bearer {self._read_token()}"},
                compression=None,
                max_size=FRAME_LIMIT,
                open_timeout=self.redial.attempt,
                ping_interval=self.redial.ping,
                ping_timeout=self.redial.ping * _PING_PATIENCE,
                close_timeout=CLOSE_SECONDS,
                proxy=self._proxy,
                # Read each time: the hub may have made a new authority.
                ssl=client_context(self._ca_file) if self.url.startswith("wss:") else None,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            raise LinkRefused(f"{self.url}{path} answered with HTTP {status}") from error
        except UsageError as error:
            raise LinkRefused(str(error)) from error
        except (OSError, InvalidHandshake, InvalidURI, EOFError) as error:
            words = f"{type(error).__name__}: {error}"
            raise LinkRefused(f"no connection to {self.url}{path}: {words}") from error
        return HubSocket(socket)

    def _read_token(self) -> str:
        """Read from the file each time: the token may have been replaced."""
        if isinstance(self._token, str):
            return self._token
        try:
            token = self._token.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LinkRefused(f"cannot read the token file: {error}") from error
        if not token or not token.isprintable():
            raise LinkRefused(f"the token file {self._token} contains no token")
        return token


class HubSocket:
    """An open connection to the hub. One task receives; any task may send."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, header: Header, lines: list[bytes] | tuple[bytes, ...] = ()) -> None:
        """Send one frame; waits while the hub is slow. Raises `LinkClosed`."""
        data = frame(header, lines)
        try:
            await self._socket.send(data if len(data) <= _FRAGMENT else _fragments(data))
        except ConnectionClosed as closed:
            raise _link_closed(closed) from closed

    async def receive(self) -> tuple[HubHeader | UnreadableStart, list[bytes]]:
        """The next frame. Raises `LinkClosed`, or `LinkError` for an invalid frame."""
        try:
            data = await self._socket.recv()
        except ConnectionClosed as closed:
            raise _link_closed(closed) from closed
        if isinstance(data, str):
            raise LinkError("the hub sent a text frame; frames must be binary")
        try:
            return await off_loop(len(data), read_hub_frame, data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if (start := _unreadable_start(data, error)) is not None:
                return start, []
            raise LinkError(f"the hub sent an invalid frame: {error}: {data[:80]!r}") from error

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close, in bounded time. Safe to call twice."""
        with anyio.move_on_after(CLOSE_SECONDS + 1, shield=True):
            # A close reason has at most 123 bytes.
            await self._socket.close(code, reason.encode()[:120].decode(errors="ignore"))


async def run_together(*parts: Callable[[], Awaitable[None]]) -> None:
    """Run the tasks of one connection until one fails. Raises its `LinkError`, not in a group."""
    failure: LinkError | None = None

    async def guard(part: Callable[[], Awaitable[None]]) -> None:
        nonlocal failure
        try:
            await part()
        except LinkError as error:
            failure = failure or error
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for part in parts:
            group.start_soon(guard, part)
    if failure is not None:
        raise failure


def _fragments(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    for at in range(0, len(view), _FRAGMENT):
        yield view[at : at + _FRAGMENT]


def _unreadable_start(data: bytes, error: Exception) -> UnreadableStart | None:
    try:
        head = msgspec.json.decode(data.partition(b"\n")[0], type=_StartHead)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return UnreadableStart(run=head.run, reason=f"this runner does not understand it: {error}")


def _link_closed(closed: ConnectionClosed) -> LinkClosed:
    code = closed.rcvd.code if closed.rcvd else 1006
    reason = f": {closed.rcvd.reason}" if closed.rcvd and closed.rcvd.reason else ""
    return LinkClosed(
        f"the connection to the hub is lost: {describe_code(code)}{reason}", close_code=code
    )


def _websocket_url(url: str) -> str:
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"hub: {url!r} is not the address of a hub, as http://127.0.0.1:8765")
    if parts.username is not None or parts.password is not None:
        raise UsageError("hub: an address with a password in it would be logged; use a token file")
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
