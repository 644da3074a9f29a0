"""Accept CLIs that dial us: a plain ASGI app, without a framework.

Owns the handshake, the token check, and the transfer of bytes from a socket to the session's link.
The hub mounts it; `serve_endpoint` runs it for one `Agent`. It knows paths, tokens and frames, not
their contents.

A CLI started with `--sdk-url ws://HOST/v1/ws/ID` opens a WebSocket there. A frame holds any bytes
of its NDJSON: several lines, or a part of one. With CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2=1 the
CLI sends by `POST /v1/session/ID/events` instead, and only reads from the socket.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
import msgspec

from quarterdeck.domain.close_codes import CLOSED, REPLACED
from quarterdeck.domain.errors import LinkClosed, UsageError
from quarterdeck.links.websocket.link import WebSocketLink
from quarterdeck.runtime.asgi import (
    Answer,
    Message,
    Receive,
    Scope,
    Send,
    TooLarge,
    has_token,
    header,
    path_of,
    read_body,
    refuse_upgrade,
    respond,
)
from quarterdeck.runtime.web_server import (
    PING_SECONDS,
    Application,
    bind,
    run_server,
    server_config,
)

BODY_LIMIT = 128 * 1024 * 1024
ROOM_SECONDS = 20.0  # how long a POST waits for the reader before it is answered with 503
HANDOVER_SECONDS = 0.5  # how long a replaced connection may take to deliver its last bytes

# The same answer for an unknown session and for a wrong token, so that clients cannot find out
# which sessions exist.
_UNKNOWN = Answer(401, "there is no session for this token")


class LinkAccess(msgspec.Struct, frozen=True):
    """A link, and the token that a CLI must present to connect to it."""

    link: WebSocketLink
    token: str

    def __post_init__(self) -> None:
        """Refuse an empty token: it would let everyone in."""
        if not self.token or not self.token.isascii():
            raise UsageError("token: it must be a non-empty ASCII text")


Route = Callable[[str], LinkAccess | None]


class CliEndpoint:
    """The ASGI app. `route` returns the `LinkAccess` for the path of a CLI's `--sdk-url`, or None.

    Keep the access of a closed link for some minutes. A CLI that comes back to it is told that the
    session is over; without it the CLI is refused, and 2.1.62 then keeps dialling.
    """

    def __init__(self, route: Route, *, body_limit: int = BODY_LIMIT) -> None:
        self._route = route
        self._body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection or request, as ASGI has it."""
        match scope["type"]:
            case "websocket":
                await self._socket(scope, receive, send)
            case "http":
                await respond(await self._post(scope, receive), send)
            case _:
                pass  # a server that asks for a lifespan does without when nothing answers

    # --- WebSocket ---

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if header(scope, b"origin") is not None:
            # A CLI sends no Origin header. A browser always does.
            await refuse_upgrade(Answer(403, "not for browsers"), receive, send)
            return
        access = self._route(path_of(scope))
        if not has_token(scope, access.token if access else "") or access is None:
            await refuse_upgrade(_UNKNOWN, receive, send)
            return
        link = access.link
        if link.over and not link.announce_end():
            # It was told and came back: 2.1.37, which no close code ends. After a refusal it gives
            # up at the second attempt.
            await refuse_upgrade(Answer(410, "the session is over"), receive, send)
            return
        await receive()  # the connect
        await send({"type": "websocket.accept"})
        connection = _AsgiConnection(send)
        await _wait_for_old_connection(link)
        if link.over:  # perhaps only now, while it connected
            await connection.end(CLOSED, "the session is over")
            return
        replaced = link.attach(connection, header(scope, b"x-last-request-id"))
        code = 1006
        try:
            async with anyio.create_task_group() as group:
                if replaced is not None:
                    group.start_soon(replaced.end, REPLACED, "a newer connection took its place")
                # Beside the reading: a CLI that first sends its own backlog reads only then.
                group.start_soon(link.flush)
                code = await _pump(link, connection, receive)
                group.cancel_scope.cancel()
        finally:
            connection.ended.set()
            link.detach(connection, code)

    # --- POST ---

    async def _post(self, scope: Scope, receive: Receive) -> Answer:
        if header(scope, b"origin") is not None:
            return Answer(403, "not for browsers")
        candidates = (self._route(path) for path in socket_paths(path_of(scope)))
        access = next((access for access in candidates if access is not None), None)
        if not has_token(scope, access.token if access else "") or access is None:
            return _UNKNOWN
        if scope["method"] != "POST":
            return Answer(405, "send events by POST")
        try:
            body = await read_body(scope, receive, self._body_limit)
        except TooLarge:
            return Answer(413, f"more than {self._body_limit} bytes")
        if body is None:
            return Answer(400, "the body did not arrive")
        return await self._events(access.link, body)

    async def _events(self, link: WebSocketLink, body: bytes) -> Answer:
        try:
            lines = event_lines(body)
        except msgspec.DecodeError as error:
            return Answer(400, f"not a list of events: {error}")
        try:
            with anyio.fail_after(ROOM_SECONDS):
                new = await link.feed_post(hashlib.sha256(body).digest(), lines)
        except LinkClosed:
            return Answer(410, "the session is over")
        except TimeoutError:
            return Answer(503, "too much data is unread; try again")
        return Answer(200, f"{len(lines)} accepted" if new else "duplicate")


class _AsgiConnection:
    """One accepted WebSocket, for the link to write to."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._ending = False
        self._ended = anyio.Event()

    @property
    def ended(self) -> anyio.Event:
        """Set when the app has seen the disconnect."""
        return self._ended

    async def write(self, data: bytes) -> None:
        """Write one text frame: 2.1.37 accepts no other kind."""
        if self._ending or self._ended.is_set():
            raise ConnectionResetError("the WebSocket is closed")
        try:
            await self._send({"type": "websocket.send", "text": data.decode()})
        except RuntimeError as error:
            # The server closed it after an unanswered ping, and has not reported that yet.
            raise ConnectionResetError("the WebSocket is closed") from error

    async def end(self, code: int, reason: str) -> None:
        """Start the closing handshake; the disconnect ends the app's side."""
        if self._ending or self._ended.is_set():
            return
        self._ending = True
        try:
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except (OSError, RuntimeError):
            self._ended.set()  # it is closed already


async def _wait_for_old_connection(link: WebSocketLink) -> None:
    """Wait briefly for the old connection: a CLI often reconnects before we see its socket die.

    Unread bytes of the old connection do not come again over the new one, so they go first.
    """
    if (old := link.current) is not None:
        with anyio.move_on_after(HANDOVER_SECONDS):
            await old.ended.wait()


async def _pump(link: WebSocketLink, connection: _AsgiConnection, receive: Receive) -> int:
    """Carry frames into the link until the socket is over; gives its close code."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            code = message.get("code")
            return code if isinstance(code, int) else 1005
        if not await link.feed(connection, _frame(message)):
            return REPLACED


def _frame(message: Message) -> bytes:
    text, data = message.get("text"), message.get("bytes")
    if isinstance(text, str):
        return text.encode()
    return data if isinstance(data, bytes) else b""


class _Events(msgspec.Struct, frozen=True):
    """The body of a POST: each message stays undecoded."""

    events: list[msgspec.Raw]


def event_lines(body: bytes) -> list[bytes]:
    """The messages of a POST, each as one line without its newline."""
    lines: list[bytes] = []
    for event in msgspec.json.decode(body, type=_Events).events:
        line = bytes(event)
        if not line.startswith(b"{"):
            raise msgspec.DecodeError("an event is not an object")
        # A JSON text contains no bare newline, so newlines are only between its parts.
        lines.append(msgspec.json.format(line, indent=-1) if b"\n" in line else line)
    return lines


def socket_paths(path: str) -> Iterator[str]:
    """The paths of `--sdk-url` from which a CLI makes this path for its POSTs.

    It puts `/session/` for the first `/ws/` and adds `/events`, unless the path ends so.
    """
    if not path.endswith("/events"):
        return
    for base in (path.removesuffix("/events"), path.removesuffix("events"), path):
        start = base.find("/session/")
        while start >= 0:
            candidate = base[:start] + "/ws/" + base[start + len("/session/") :]
            if candidate.find("/ws/") == start:
                yield candidate
            start = base.find("/session/", start + 1)
        if "/ws/" not in base:
            yield base


@asynccontextmanager
async def serve_endpoint(
    endpoint: Application,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ping_seconds: float = PING_SECONDS,
) -> AsyncIterator[int]:
    """Serve `endpoint` while the block runs; yields the port, a free one by default.

    Raises `LinkRefused` when the address cannot be used. Close the links first: a connection that
    is still open at the end is closed with 1012, after which a CLI dials again.
    """
    # The CLI pings us and needs none. These are for us: a machine that vanished is noticed in 40 s,
    # long before the CLI's 600 s of dialling are over.
    config = server_config(endpoint, ping_seconds=ping_seconds, pong_seconds=ping_seconds)
    listener = bind(host, port)
    async with run_server(config, listener):
        yield listener.getsockname()[1]
