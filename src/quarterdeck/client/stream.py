"""The hub's stream from a client's side: one WebSocket, events in, commands out.

Owns the connection: the handshake, the beats, and the answers to commands by their ids. Above is
`feed`, which reconnects when the hub was away. Below is the `websockets` client.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

import anyio
import msgspec
from msgspec import Raw, Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from quarterdeck.client.calls import HubAddress, refusal
from quarterdeck.domain.errors import LinkClosed, LinkRefused
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.problems import Problem, of_status
from quarterdeck.protocol.stream_frames import (
    Bad,
    Beat,
    Done,
    Events,
    Failed,
    Follow,
    Following,
    Frame,
    Hello,
    Live,
    Order,
    ServerFrame,
    Unfollow,
    Views,
)
from quarterdeck.runtime.client_tls import client_context

OPEN_SECONDS = 15.0
COMMAND_SECONDS = 60.0
LARGEST_FRAME = 256 * 1024 * 1024
"""A single event may hold a line of tens of megabytes."""


Followed = Following | Events | Views | Live

_decoder: msgspec.json.Decoder[ServerFrame] = msgspec.json.Decoder(ServerFrame)
_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(ServerFrame))


class _Kind(Struct):
    """The kind of a frame; the first look at one."""

    t: str


_kinds: msgspec.json.Decoder[_Kind] = msgspec.json.Decoder(_Kind)


class HubStream:
    """One connection. One task reads `frames`; any may call `do`."""

    def __init__(self, socket: ClientConnection, hello: Hello) -> None:
        self.hello = hello
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[str, list[Done | Failed]] = {}
        self._bells: dict[str, anyio.Event] = {}

    async def follow(
        self,
        sessions: dict[str, int],
        *,
        epoch: str | None = None,
        all: bool = False,  # noqa: A002 - the member of the frame
        after: int | None = None,
        live: bool = True,
        views: bool = True,
    ) -> None:
        """Follow these sessions, each after its number. The answer is a frame: `Following`.

        With `all`, every session is followed from now on, or after the position `after`.
        """
        wanted = epoch if any(sessions.values()) or after is not None else None
        await self._send(
            Follow(
                id=self._id(),
                sessions=sessions,
                epoch=wanted,
                all=all,
                after=after,
                live=live,
                views=views,
            )
        )

    async def unfollow_all(self) -> None:
        """Follow no session any more. The answer is a frame: `Following`."""
        await self._send(Unfollow(id=self._id(), all=True))

    async def do(self, command: AnyCommand, seconds: float = COMMAND_SECONDS) -> Outcome:
        """Send a command and wait for its answer. Another task must be reading `frames`.

        Raises `HubRefused`, or `LinkClosed` when no answer came.
        """
        id_, bell = self._id(), anyio.Event()
        self._bells[id_] = bell
        try:
            await self._send(Order(id=id_, command=Raw(msgspec.json.encode(command))))
            with anyio.move_on_after(seconds):
                await bell.wait()
            answers = self._waiting.pop(id_, [])
        finally:
            self._bells.pop(id_, None)
        match answers:
            case [Done(outcome=outcome)]:
                return outcome
            case [Failed(problem=problem)]:
                raise refusal(problem)
            case _:
                raise LinkClosed("the hub did not answer: the command may have been done, or not")

    async def frames(self) -> AsyncGenerator[Followed]:
        """Frames about sessions. It ends with `LinkClosed`, and never just returns."""
        try:
            async for data in self._socket:
                frame = _decode(data)
                match frame:
                    case Done(id=id_) | Failed(id=id_):
                        self._settle(id_, frame)
                    case Bad(problem=problem):
                        raise refusal(problem)
                    case Following() | Events() | Views() | Live():
                        yield frame
                    case _:
                        pass
            raise LinkClosed("the hub has closed the connection")
        except ConnectionClosed as error:
            raise LinkClosed(f"the connection to the hub was lost: {error}") from error
        finally:
            for bell in self._bells.values():
                bell.set()

    async def beat(self) -> None:
        """Send `beat` now and then. It runs until it is cancelled, or the link is lost."""
        while True:
            await anyio.sleep(self.hello.beat_seconds)
            await self._send(Beat())

    def _settle(self, id_: str, answer: Done | Failed) -> None:
        bell = self._bells.get(id_)
        if bell is not None:
            self._waiting[id_] = [answer]
            bell.set()

    def _id(self) -> str:
        return str(next(self._ids))

    async def _send(self, frame: Frame) -> None:
        try:
            await self._socket.send(msgspec.json.encode(frame).decode())
        except ConnectionClosed as error:
            raise LinkClosed(f"the connection to the hub was lost: {error}") from error


@asynccontextmanager
async def open_stream(where: HubAddress) -> AsyncIterator[HubStream]:
    """Connect. Raises `LinkRefused` where no hub answers, `HubRefused` where it refuses."""
    address = where.base
    url = "ws" + address.removeprefix("http") + "/api/stream"
    try:
        socket = await connect(
            url,
            additional_headers={"Authorization": f"Bearer {where.token}"},
            compression=None,
            proxy=None,
            ssl=client_context(where.ca_file) if url.startswith("wss:") else None,
            max_size=LARGEST_FRAME,
            open_timeout=OPEN_SECONDS,
            close_timeout=2.0,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status in {401, 403}:
            raise refusal(_refusal(error)) from error
        raise LinkRefused(f"{address} answered with HTTP {status}") from error
    except (OSError, InvalidHandshake, EOFError, TimeoutError) as error:
        raise LinkRefused(f"no hub answers at {address}: {error}") from error
    try:
        try:
            with anyio.fail_after(OPEN_SECONDS):
                hello = _decode(await socket.recv())
        except (TimeoutError, ConnectionClosed) as error:
            raise LinkRefused(f"the hub at {address} does not say hello: {error}") from error
        if not isinstance(hello, Hello):
            raise LinkRefused(f"the hub at {address} does not begin with hello")
        yield HubStream(socket, hello)
    finally:
        with anyio.move_on_after(3.0, shield=True):
            await socket.close()


def _decode(data: str | bytes) -> ServerFrame | None:
    """A frame; None for one of a kind that this version does not know."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if isinstance(error, msgspec.ValidationError) and _is_new(data):
            return None
        raise LinkClosed(f"the hub sent a frame that cannot be read: {error}") from error


def _is_new(data: str | bytes) -> bool:
    try:
        return _kinds.decode(data).t not in _KINDS
    except msgspec.ValidationError:
        return False


def _refusal(error: InvalidStatus) -> Problem:
    try:
        return msgspec.json.decode(error.response.body or b"", type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return of_status(error.response.status_code, "")
