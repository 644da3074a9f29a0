"""Connections that end when the access that opened them ends.

Owns who is connected by which grant, and how a connection ends whose grant was revoked or has
expired: a WebSocket with 4401, a response that is still being sent by cutting it off, a request
whose body is still on its way by refusing it. The gate uses it for every request, so
that no endpoint can forget it. Below is the file of tokens, which other processes change too: it is
checked every second while there are connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Collection, Iterator

import anyio
import anyio.lowlevel

from quarterdeck.fronts.http.asgi import ASGIApp, Message, Receive, Scope, Send
from quarterdeck.fronts.http.problems import Refused

logger = logging.getLogger(__name__)

REVOKED = 4401
REASON = "access was revoked, or has expired"
CHECK_SECONDS = 1.0
"""How soon an expiry, and a change of the file by another process, is noticed."""

_CLOSE_SECONDS = 2.0
_EVENT_STREAM = b"text/event-stream"


class OpenConnections:
    """The open connections, by grant. `valid` gives the ids of the grants that are valid."""

    def __init__(self, valid: Callable[[], Collection[str]]) -> None:
        self._valid = valid
        self._watchers: dict[int, tuple[str, Callable[[], None]]] = {}
        self._next = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: contextvars.Context | None = None
        self._timer: asyncio.TimerHandle | None = None

    def is_valid(self, grant: str) -> bool:
        """Whether a grant has neither been revoked nor expired."""
        return grant in self._valid()

    @contextlib.contextmanager
    def watch(self, grant: str, revoked: Callable[[], None]) -> Iterator[None]:
        """Call `revoked` in this event loop, once, if the grant ends while the block runs."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._context = loop, contextvars.copy_context()
            self._timer = None
        self._next += 1
        number = self._next
        self._watchers[number] = (grant, revoked)
        if self._timer is None:
            self._timer = loop.call_later(CHECK_SECONDS, self._tick)
        try:
            yield
        finally:
            self._watchers.pop(number, None)

    def check_soon(self) -> None:
        """A grant was revoked: end its connections now. May be called from any thread.

        What the caller does next in the event loop happens after that.
        """
        if self._loop is not None and not self._loop.is_closed():
            # A thread's own context says that there is no event loop.
            self._loop.call_soon_threadsafe(self._check, context=self._context)

    def _tick(self) -> None:
        self._timer = None
        try:
            self._check()
        except OSError as error:  # who is valid is not known now; it is asked again
            logger.error("the file of tokens cannot be looked at: %s", error)
        if self._watchers and self._loop is not None:
            self._timer = self._loop.call_later(CHECK_SECONDS, self._tick)

    def _check(self) -> None:
        valid = frozenset(self._valid())
        gone = [number for number, (grant, _) in self._watchers.items() if grant not in valid]
        for number in gone:
            _, revoked = self._watchers.pop(number)
            revoked()


async def serve_request(
    connections: OpenConnections,
    grant: str,
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer a request while its grant is valid.

    A body that is whole only after the revocation is refused: nothing is carried out for it. An
    answer that is being streamed then is cut off. Any other answer is already on its way.
    """
    begun = ended = events = gone = False
    serving = anyio.CancelScope()

    def on_revoked() -> None:
        nonlocal gone
        gone = True
        if begun:
            serving.cancel()

    async def checked_receive() -> Message:
        message = await receive()
        whole = message["type"] == "http.request" and not message.get("more_body", False)
        if whole and not begun and not connections.is_valid(grant):
            raise Refused("unauthorized", REASON)
        return message

    async def checked_send(message: Message) -> None:
        nonlocal begun, ended, events
        if message["type"] == "http.response.start":
            begun = True
            events = any(value.startswith(_EVENT_STREAM) for _, value in message["headers"])
        elif message["type"] == "http.response.body":
            ended = not message.get("more_body", False)
            if gone and not ended:
                serving.cancel()
                await anyio.lowlevel.checkpoint()
        await send(message)

    with serving, connections.watch(grant, on_revoked):
        await app(scope, checked_receive, checked_send)
    if events and not ended:
        # A normal end: the client reconnects and is refused. An answer that is no such stream must
        # not look whole, and is left without an end.
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True), contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def serve_socket(
    connections: OpenConnections,
    grant: str,
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    strict: bool = False,
) -> None:
    """Serve a WebSocket while its grant is valid, and close it with 4401 when it is not.

    The client is disconnected at once, even if the app has something to finish first. `strict`:
    each message is sent only if the grant is valid at that moment.
    """
    gone = False
    async with anyio.create_task_group() as tasks:
        serving = anyio.CancelScope()

        def on_revoked() -> None:
            nonlocal gone
            if not gone:
                gone = True
                serving.cancel()
                tasks.start_soon(_close, send)

        async def checked_receive() -> Message:
            message = await receive()
            if gone:
                # Messages that wait already are given without a pause in which the app would be
                # cancelled: none of them counts any more.
                await anyio.lowlevel.checkpoint()
                return {"type": "websocket.disconnect", "code": REVOKED, "reason": REASON}
            return message

        async def checked_send(message: Message) -> None:
            if strict and not gone and not connections.is_valid(grant):
                on_revoked()
            if not gone:
                await send(message)

        with serving, connections.watch(grant, on_revoked):
            await app(scope, checked_receive, checked_send)


async def _close(send: Send) -> None:
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
        # It may be gone already, which is what was wanted.
        with contextlib.suppress(OSError, RuntimeError):
            await send({"type": "websocket.close", "code": REVOKED, "reason": REASON})
