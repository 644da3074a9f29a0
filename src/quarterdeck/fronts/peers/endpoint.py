"""What other hubs on the same journal may ask of this one, below `/hub/`.

Each request has a seal, which is checked before its body is read; nobody but a hub can make one.
The answer has a seal, too. Rights are checked again here, by the role of the person, although the
other hub checked them; what names nobody is refused. A command is done here or not at all: it is
never passed on a second time. So is the request of an agent: the other hub knew its token, names
its run, and keeps the token for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from itertools import count
from typing import Any, Protocol

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, QuarterdeckError, UsageError
from quarterdeck.fronts.peers.messages import (
    AgentAnswer,
    AgentCall,
    CarriedError,
    MachineAnswer,
    SealedCommand,
    SealedRequest,
    to_carried,
)
from quarterdeck.fronts.peers.rights import check_asker, right_for_request
from quarterdeck.fronts.peers.seal import HEADER, NoSeal, Sealer, WrongHub, check_digest
from quarterdeck.hub.api import Live, ask_as
from quarterdeck.protocol.command_table import right_for
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.views import Deltas, MachineView

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)

PREFIX = "/hub/"
COMMANDS, REQUESTS, AGENTS, MACHINES, LIVE = (
    PREFIX + name for name in ("do", "ask", "agent", "machines", "live")
)
FORWARDED = "quarterdeck-forwarded"
"""The header of a request that another hub has passed on."""
AGENT_PATH = "/mcp"
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

    def agent_token_of(self, session: str, run: str) -> str:
        """The token of a run, for another hub that has checked it."""

    def machines_here(self) -> list[MachineView]:
        """The machines of this hub."""

    @property
    def live_text(self) -> Live:
        """The text that is being made."""


class PeerEndpoint:
    """The ASGI app for other hubs."""

    def __init__(self, hub: Owner, sealer: Sealer, agents: ASGIApp | None = None) -> None:
        """`agents` answers agents, at `/mcp`."""
        self._hub = hub
        self._sealer = sealer
        self._agents = agents
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End the feeds: the server that stops would wait for them."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of another hub."""
        seal = _seal_of(scope)
        answer: object
        try:
            method, path = str(scope["method"]), str(scope["path"])
            digest = self._sealer.open(seal, method, path)
            body = await read_body(receive, MOST_BYTES)
            check_digest(body, digest)
        except NoSeal as error:
            log.warning("a request that is not from a hub: %s", error)
            await _respond(send, 403, CarriedError(kind="forbidden", text=str(error)))
            return
        except WrongHub as error:
            status, answer = WRONG_HUB, CarriedError(kind="again", text=str(error))
        except (Forbidden, ValueError) as error:
            log.warning("a request of another hub is refused: %s", error)
            status, answer = 403, CarriedError(kind="forbidden", text=str(error))
        else:
            if (method, path) == ("GET", LIVE):
                await self._feed(seal, receive, send)
                return
            status, answer = await self._answer_or_refuse(method, path, body, scope, receive)
        await _respond(send, status, answer, partial(self._sealer.seal_answer, seal))

    async def _answer_or_refuse(
        self, method: str, path: str, body: bytes, scope: Scope, receive: Receive
    ) -> tuple[int, object]:
        try:
            return 200, await self._answer(method, path, body, scope, receive)
        except QuarterdeckError as error:
            return NOT_MINE, to_carried(error)
        except (msgspec.DecodeError, RecursionError) as error:
            return 400, to_carried(UsageError(f"body: {error}"))

    async def _answer(
        self, method: str, path: str, body: bytes, scope: Scope, receive: Receive
    ) -> object:
        match method, path:
            case "POST", "/hub/do":
                asked = msgspec.json.decode(body, type=SealedCommand)
                command = _commands.decode(asked.command)
                check_asker(asked.asker, right_for(command))
                with ask_as(asked.asker):
                    return await self._hub.submit_here(command)
            case "POST", "/hub/ask":
                wanted = msgspec.json.decode(body, type=SealedRequest)
                check_asker(wanted.asker, right_for_request(wanted.request))
                refused, line = await self._hub.ask_machine(wanted.machine, wanted.request)
                return MachineAnswer(refused=refused, answer=line)
            case "POST", "/hub/agent":
                call = msgspec.json.decode(body, type=AgentCall)
                return await self._answer_agent(call, scope, receive)
            case "GET", "/hub/machines":
                return self._hub.machines_here()
            case _:
                raise UsageError(f"there is no {method} {path}")

    async def _answer_agent(self, call: AgentCall, scope: Scope, receive: Receive) -> AgentAnswer:
        """Have an agent answered as if it had come here, with the token of its run."""
        if self._agents is None:
            raise UsageError("this hub answers no agents")
        token = self._hub.agent_token_of(call.session, call.run)
        given = [(name.lower(), value) for name, value in call.headers]
        rows = [(name, value) for name, value in given if name not in {"authorization", FORWARDED}]
        rows += [("authorization", f"Bearer {token}"), (FORWARDED, "1")]
        inner = {
            **scope,
            "method": call.method,
            "path": AGENT_PATH,
            "raw_path": AGENT_PATH.encode(),
            "query_string": b"",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in rows],
            "quarterdeck.person": None,
        }
        body: list[bytes] = [call.body]
        answer = _Answer()

        async def receive_body() -> Message:
            if body:
                return {"type": "http.request", "body": body.pop(), "more_body": False}
            return await receive()

        await self._agents(inner, receive_body, answer.take)
        return AgentAnswer(
            status=answer.status, headers=answer.headers, body=b"".join(answer.parts)
        )

    async def _feed(self, seal: str, receive: Receive, send: Send) -> None:
        await _feed(
            self._hub.live_text,
            self._closing,
            receive,
            send,
            partial(self._sealer.seal_line, seal),
        )


class _Answer:
    """An answer that is kept, in place of being sent."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: tuple[tuple[str, str], ...] = ()
        self.parts: list[bytes] = []

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = tuple(
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in message.get("headers", ())
            )
        elif message["type"] == "http.response.body":
            self.parts.append(message.get("body", b""))


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


async def _respond(
    send: Send,
    status: int,
    answer: object,
    seal: Callable[[int, bytes], str] | None = None,
) -> None:
    body = msgspec.json.encode(answer)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if seal is not None:
        headers.append((HEADER.encode(), seal(status, body).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class LiveLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the feed, behind its seal and a blank: a delta, or a session whose text is whole;
    empty: a sign of life.
    """

    delta: Deltas | None = None
    whole: str | None = None


async def _feed(
    live: Live,
    closing: asyncio.Event,
    receive: Receive,
    send: Send,
    seal: Callable[[int, bytes], str],
) -> None:
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
            for number in count():
                line = LiveLine()
                with anyio.move_on_after(BEAT_SECONDS):
                    line = await waiting.get()
                data = msgspec.json.encode(line)
                data = b"%b %b\n" % (seal(number, data).encode(), data)
                await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        end()
