"""JSON-RPC 2.0 in both directions, one message per line, with requests that can be cancelled.

Owns framing, ids, and that every request ends exactly once: by its answer, by an error, or with the
connection. Input may be wrong, huge or doubled: it gets an error answer, and the connection goes
on. The `acp` package has a connection too; it ends at an odd id, drops lines that are no JSON
without an answer, and cannot cancel a request. It knows no method of the protocol but
`$/cancel_request`, which is about JSON-RPC itself.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.wire.line_reader import LineReader, OversizedLine

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
CANCELLED = -32800

CANCEL = "$/cancel_request"
MOST_REQUESTS = 256
"""Requests of the other side that are answered at the same time. An editor has a few."""
LARGEST_LINE = 64 * 1024 * 1024
"""Bytes. A prompt with images has some; what is longer is refused and skipped."""

LAST_SECONDS = 2.0
_GONE = "the editor has closed the connection"

Id = int | str | None
log = logging.getLogger(__name__)


class RpcError(Exception):
    """A request failed: `code`, a sentence for a person, and `data` for programs."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Reply(Value):
    """The answer to a request, and what to do once it was sent."""

    result: object
    after: Callable[[], Awaitable[None]] | None = None


class Handler(Protocol):
    """What answers the other side."""

    async def request(self, method: str, params: object) -> Reply:
        """Answer a request. Raises `RpcError`; it is cancelled when the other side cancels."""

    async def notification(self, method: str, params: object) -> None:
        """Take a notification. It cannot fail."""


class Pipe(Protocol):
    """The bytes of a connection."""

    async def receive(self) -> bytes:
        """The next bytes; none at the end."""

    async def send(self, data: bytes) -> None:
        """Send all of them. Raises `LinkClosed`."""


class Connection:
    """One connection. `serve` reads until the other side ends it."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._sending = anyio.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._running: dict[Id, anyio.CancelScope] = {}
        self._writing: anyio.CancelScope | None = None
        self._closed = False
        self._ended = anyio.Event()
        """A request was answered; waited for at the end only."""

    async def serve(self, handler: Handler, tasks: TaskGroup) -> None:
        """Read until the end; each request is answered in a task of its own.

        After the end, requests that are nearly done are still answered. Nothing is sent then.
        """
        reader = LineReader(LARGEST_LINE)
        try:
            while data := await self._pipe.receive():
                for line in reader.feed(data):
                    await self._take(line, handler, tasks)
            if last := reader.end():
                await self._take(last, handler, tasks)
            with anyio.move_on_after(LAST_SECONDS):
                while self._running:
                    self._ended = anyio.Event()
                    await self._ended.wait()
        finally:
            self._closed = True
            if self._writing is not None:
                self._writing.cancel()
            for waiting in self._waiting.values():
                waiting.end(RpcError(INTERNAL_ERROR, _GONE))

    # --- from here to the other side -------------------------------------------------------------

    async def notify(self, method: str, params: object) -> None:
        """Send a notification. Raises `LinkClosed`."""
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: object) -> object:
        """Send a request and wait for its result. Raises `RpcError`, `LinkClosed`.

        If the caller is cancelled, the other side is told so.
        """
        number = next(self._numbers)
        waiting = self._waiting[number] = _Waiting()
        try:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await self._send(message)
            await waiting.bell.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._cancel(number)
            raise
        finally:
            del self._waiting[number]
        if waiting.error is not None:
            raise waiting.error
        return waiting.result

    async def _cancel(self, number: int) -> None:
        with suppress(LinkClosed):  # there may be nobody left to be told
            await self.notify(CANCEL, {"requestId": number})

    async def _send(self, message: dict[str, object]) -> None:
        data = msgspec.json.encode(message) + b"\n"
        async with self._sending:
            if self._closed:
                raise LinkClosed(_GONE)
            # Half a line would spoil all that follow.
            with anyio.CancelScope(shield=True) as self._writing:
                await self._pipe.send(data)
            self._writing = None

    # --- from the other side ---------------------------------------------------------------------

    async def _take(self, line: bytes | OversizedLine, handler: Handler, tasks: TaskGroup) -> None:
        if isinstance(line, OversizedLine):
            text = f"the line has {line.size} bytes; at most {LARGEST_LINE} are read"
            await self._refuse(None, INVALID_REQUEST, text)
            return
        try:
            message = msgspec.json.decode(line)
        except DECODE_ERRORS as error:
            await self._refuse(None, PARSE_ERROR, f"the line is not JSON: {error}")
            return
        if not isinstance(message, dict):
            await self._refuse(None, INVALID_REQUEST, "a message is one JSON object")
            return
        id_ = message.get("id")
        if isinstance(id_, bool) or not isinstance(id_, int | str | None):
            await self._refuse(None, INVALID_REQUEST, "an id is a number or a string")
            return
        method = message.get("method")
        if method is None:
            self._settle_request(id_, message)
        elif not isinstance(method, str):
            await self._refuse(id_, INVALID_REQUEST, "a method is a string")
        elif "id" in message:
            await self._begin(id_, method, message.get("params"), handler, tasks)
        elif method == CANCEL:
            self._cancel_request(message.get("params"))
        else:
            await self._handle_notification(method, message.get("params"), handler)

    def _settle_request(self, id_: Id, message: dict[str, object]) -> None:
        waiting = self._waiting.get(id_) if isinstance(id_, int) else None
        if waiting is None:
            return  # late, or to nothing that was asked
        error = message.get("error")
        waiting.end(None if error is None else _error_in(error), message.get("result"))

    def _cancel_request(self, params: object) -> None:
        id_ = params.get("requestId") if isinstance(params, dict) else None
        scope = self._running.get(id_) if isinstance(id_, int | str) else None
        if scope is not None:
            scope.cancel()

    async def _handle_notification(self, method: str, params: object, handler: Handler) -> None:
        """In the order of the lines: a notification never waits for anything."""
        try:
            await handler.notification(method, params)
        except Exception:
            log.exception("the notification %s failed", method)

    async def _begin(
        self, id_: Id, method: str, params: object, handler: Handler, tasks: TaskGroup
    ) -> None:
        if id_ in self._running:
            await self._refuse(id_, INVALID_REQUEST, "a request with this id is not answered yet")
        elif len(self._running) >= MOST_REQUESTS:
            text = f"{MOST_REQUESTS} requests are not answered yet"
            await self._refuse(id_, INTERNAL_ERROR, text)
        else:
            scope = self._running[id_] = anyio.CancelScope()
            tasks.start_soon(self._run, id_, method, params, handler, scope)

    async def _run(
        self, id_: Id, method: str, params: object, handler: Handler, scope: anyio.CancelScope
    ) -> None:
        reply: Reply | RpcError = RpcError(CANCELLED, "the request was cancelled")
        try:
            with scope:
                reply = await handler.request(method, params)
        except RpcError as error:
            reply = error
        except Exception as error:
            # The one boundary of a request: whatever failed, the editor gets an answer.
            log.exception("the request %s failed", method)
            reply = RpcError(INTERNAL_ERROR, f"internal error: {type(error).__name__}")
        try:
            if isinstance(reply, RpcError):
                await self._refuse(id_, reply.code, str(reply), reply.data)
                return
            await self._send({"jsonrpc": "2.0", "id": id_, "result": reply.result})
        except LinkClosed:
            return
        finally:
            del self._running[id_]
            self._ended.set()
        if reply.after is not None:
            await reply.after()

    async def _refuse(self, id_: Id, code: int, text: str, data: object = None) -> None:
        error: dict[str, object] = {"code": code, "message": text}
        if data is not None:
            error["data"] = data
        with suppress(LinkClosed):  # the reader sees the end too
            await self._send({"jsonrpc": "2.0", "id": id_, "error": error})


class _Waiting:
    """A request of ours that has no answer yet."""

    def __init__(self) -> None:
        self.bell = anyio.Event()
        self.result: object = None
        self.error: RpcError | None = None

    def end(self, error: RpcError | None, result: object = None) -> None:
        """It is over."""
        if not self.bell.is_set():
            self.error, self.result = error, result
            self.bell.set()


def _error_in(error: object) -> RpcError:
    """The error that the other side sent, whatever its form."""
    members = error if isinstance(error, dict) else {}
    code, text = members.get("code"), members.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        text if isinstance(text, str) else "the editor answered with an error",
        members.get("data"),
    )
