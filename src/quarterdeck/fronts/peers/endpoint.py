"""What other hubs on the same journal may ask of this one, below `/hub/`.

Each request has a seal, which is checked before its body is read; nobody but a hub can make one.
Rights are checked again here, by the role of the person, although the other hub checked them. A
command is done here or not at all: it is never passed on a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, QuarterdeckError, UsageError
from quarterdeck.fronts.peers.carried import (
    CarriedError,
    MachineAnswer,
    SealedCommand,
    SealedRequest,
    carried,
)
from quarterdeck.fronts.peers.seal import HEADER, Sealer, WrongHub, check_digest
from quarterdeck.hub.api import Live
from quarterdeck.protocol.command_table import right_for
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.roles import RIGHTS
from quarterdeck.protocol.views import Deltas, MachineView

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

log = logging.getLogger(__name__)

PREFIX = "/hub/"
COMMANDS, REQUESTS, MACHINES, LIVE = (PREFIX + name for name in ("do", "ask", "machines", "live"))
WRONG_HUB, NOT_MINE = 421, 409
MOST_BYTES = 64 * 1024 * 1024
BODY_SECONDS = 60.0
MOST_WAITING = 10_000
"""Pieces of live text that wait for a hub which reads slowly; then it is disconnected."""
BEAT_SECONDS = 5.0

_commands: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)


class Owner(Protocol):
    """The hub, as far as other hubs ask it."""

    async def submit_here(self, command: AnyCommand) -> Outcome:
        """Do a command, in this hub."""

    async def ask_machine(self, machine: str, request: Raw) -> tuple[bool, bytes]:
        """Have a machine that is connected here do something."""

    def machines_here(self) -> list[MachineView]:
        """The machines of this hub."""

    @property
    def live_text(self) -> Live:
        """The text that is being made."""


class PeerEndpoint:
    """The ASGI app for other hubs."""

    def __init__(self, hub: Owner, sealer: Sealer) -> None:
        self._hub = hub
        self._sealer = sealer
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End the feeds: the server that stops would wait for them."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of another hub."""
        try:
            method, path = str(scope["method"]), str(scope["path"])
            digest = self._sealer.open(_seal_of(scope), method, path)
            body = await read_body(receive, MOST_BYTES)
            check_digest(body, digest)
        except WrongHub as error:
            await _respond(send, WRONG_HUB, CarriedError(kind="again", text=str(error)))
            return
        except (Forbidden, ValueError) as error:
            log.warning("a request that is not from a hub: %s", error)
            await _respond(send, 403, CarriedError(kind="forbidden", text=str(error)))
            return
        if (method, path) == ("GET", LIVE):
            await _feed(self._hub.live_text, self._closing, receive, send)
            return
        try:
            answer = await self._answer(method, path, body)
        except QuarterdeckError as error:
            await _respond(send, NOT_MINE, carried(error))
        except (msgspec.DecodeError, RecursionError) as error:
            await _respond(send, 400, carried(UsageError(f"body: {error}")))
        else:
            await _respond(send, 200, answer)

    async def _answer(self, method: str, path: str, body: bytes) -> object:
        match method, path:
            case "POST", "/hub/do":
                asked = msgspec.json.decode(body, type=SealedCommand)
                command = _commands.decode(asked.command)
                right = right_for(command)
                if asked.role is not None and right not in RIGHTS[asked.role]:
                    raise Forbidden(f"the role {asked.role.value} may not {right.value}")
                return await self._hub.submit_here(command)
            case "POST", "/hub/ask":
                wanted = msgspec.json.decode(body, type=SealedRequest)
                refused, line = await self._hub.ask_machine(wanted.machine, wanted.request)
                return MachineAnswer(refused=refused, answer=line)
            case "GET", "/hub/machines":
                return self._hub.machines_here()
            case _:
                raise UsageError(f"there is no {method} {path}")


def _seal_of(scope: Scope) -> str:
    rows: list[tuple[bytes, bytes]] = scope["headers"]
    found = [value for key, value in rows if key.lower() == HEADER.encode()]
    return found[0].decode("latin-1") if len(found) == 1 else ""


async def read_body(receive: Receive, most: int) -> bytes:
    """The body. Raises `ValueError` for one that is too large, too slow, or not whole."""
    body = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ValueError("the body is not whole")
                body += message.get("body", b"")
                if len(body) > most:
                    raise ValueError("the body is too large")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise ValueError("the body came too slowly") from None


async def _respond(send: Send, status: int, answer: object) -> None:
    body = msgspec.json.encode(answer)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class LiveLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the feed: a delta, or a session whose text is whole; empty: a sign of life."""

    delta: Deltas | None = None
    whole: str | None = None


async def _feed(live: Live, closing: asyncio.Event, receive: Receive, send: Send) -> None:
    """Send live text until the other hub is gone, or this one stops."""
    waiting: asyncio.Queue[LiveLine] = asyncio.Queue(MOST_WAITING)
    too_slow = asyncio.Event()

    def put(line: LiveLine) -> None:
        try:
            waiting.put_nowait(line)
        except asyncio.QueueFull:
            too_slow.set()

    end = live.listen_near(
        lambda delta: put(LiveLine(delta=delta)), lambda session: put(LiveLine(whole=session))
    )

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async def give_up(when: asyncio.Event) -> None:
        await when.wait()
        tasks.cancel_scope.cancel()

    headers = [(b"content-type", b"application/x-ndjson")]
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave)
            tasks.start_soon(give_up, too_slow)
            tasks.start_soon(give_up, closing)
            while True:
                line = LiveLine()
                with anyio.move_on_after(BEAT_SECONDS):
                    line = await waiting.get()
                data = msgspec.json.encode(line) + b"\n"
                await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        end()
