"""The Bot API on loopback, for tests of bots: strict where Telegram is, with simulated people.

`BotApiServer` serves the methods of `methods`, long polling and webhooks at `url`, and `POST
/sim/NAME` for tests in other languages. `sim` is the same for tests in Python. It keeps every call,
so that a test can count them, and it can be told to fail in the ways in which networks do.

It knows one bot. It does not parse `parse_mode`, and it shows all blocks of rich messages as text.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, get_args

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.runtime.clock import Clock
from quarterdeck.testing.loop_server import (
    LoopServer,
    Receive,
    Scope,
    Send,
    answer,
    begin,
    read_body,
    request_headers,
    until_hang_up,
)
from quarterdeck.testing.telegram.flood import FloodControl, FloodLimits
from quarterdeck.testing.telegram.long_poll import Poller
from quarterdeck.testing.telegram.methods import LIMITED, METHODS
from quarterdeck.testing.telegram.objects import Call, Message
from quarterdeck.testing.telegram.params import Params, read_params
from quarterdeck.testing.telegram.refusal import Refusal
from quarterdeck.testing.telegram.sim import ACTIONS, Sim
from quarterdeck.testing.telegram.webhook import WebhookPoster
from quarterdeck.testing.telegram.world import RawUpdate, World

TOKEN = "1000000001:test-token-of-no-real-bot-000000000"  # noqa: S105 - no secret
START_SECONDS = 10.0
STOP_SECONDS = 5.0

FaultKind = Literal["error", "page", "cut", "lost", "hang", "refuse", "unknown"]
"""`error`: status 500. `page`: status 502 with HTML, as a proxy answers. `cut`: the connection
breaks and nothing was done. `lost`: it was done, and the connection breaks before the answer.
`hang`: no answer until the server closes or the client hangs up. `refuse`: status 400, for a reason
that only a newer Telegram has. `unknown`: status 404, as a server has it that is older than the
method."""

_Found = TypeVar("_Found")


class _Fault(Struct):
    kind: FaultKind
    times: int


class BotApiServer:
    """The server, while its `async with` block lasts."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = "test_bot",
        limits: FloodLimits | None = None,
        clock: Clock | None = None,
        port: int = 0,
    ) -> None:
        """`limits` are those of Telegram unless others are given; `clock` is what they count by."""
        self.token = token
        self.url = ""
        self.clock = clock or Clock()
        self.calls: list[Call] = []
        bot_id = int(token.partition(":")[0])
        self.world = World(username=username, now=self.clock.now, bot_id=bot_id)
        self.flood = FloodControl(limits or FloodLimits())
        self.sim = Sim(self.world, self.flood)
        self._port = port
        self._news = anyio.Event()
        self._closing = anyio.Event()
        self._faults: dict[str, _Fault] = {}
        self._held: dict[str, anyio.Event] = {}
        self._poller = Poller(self.world, self.clock)
        self._webhook = WebhookPoster(self.world, self.clock)
        self.world.on_update = self._on_update
        self._stack: contextlib.AsyncExitStack | None = None

    # --- serving ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", self._port))
        server = LoopServer.of(self._app)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(listener.close)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(server.serve, [listener])
            tasks.start_soon(self._webhook.run)
            stack.push_async_callback(self._stop, server, tasks)
            with anyio.fail_after(START_SECONDS):
                await server.ready.wait()
            self._stack = stack.pop_all()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The exit stack does not see the block's own error: its task group would wrap it.
        assert self._stack is not None, "the server was not started"
        await self._stack.aclose()

    async def _stop(self, server: LoopServer, tasks: TaskGroup) -> None:
        self._closing.set()
        self._poller.close()
        server.leave.set()
        with anyio.move_on_after(STOP_SECONDS, shield=True):
            await server.ended.wait()
        tasks.cancel_scope.cancel()

    def _on_update(self) -> None:
        self._poller.wake()
        self._webhook.wake()
        self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # --- control by a test -----------------------------------------------------------------------

    def fail(self, kind: FaultKind, method: str = "", times: int = 1) -> None:
        """Let the next calls fail: those of one method, or all."""
        if kind not in get_args(FaultKind):
            raise UsageError(f"there is no fault {kind!r}: {', '.join(get_args(FaultKind))}")
        self._faults[method.lower()] = _Fault(kind, times)

    @contextlib.contextmanager
    def hold_back(self, method: str) -> Iterator[None]:
        """Hold back the answers of a method while the block runs: its calls are done, and people
        see what they did, but the bot does not hear of it yet.
        """
        if method not in METHODS:
            raise UsageError(f"there is no method {method!r}")
        released = self._held[method] = anyio.Event()
        try:
            yield
        finally:
            released.set()
            if self._held.get(method) is released:
                del self._held[method]

    async def wait_for(self, look: Callable[[], _Found | None], timeout: float = 30.0) -> _Found:
        """What `look` finds, as soon as it finds something; it looks after every call."""
        with anyio.fail_after(timeout):
            while True:
                news = self._news
                if found := look():
                    return found
                await news.wait()

    async def wait_for_message(
        self,
        chat: int,
        text: str = "",
        *,
        thread: int | None = None,
        after: int = 0,
        timeout: float = 30.0,
    ) -> Message:
        """The first message of the bot that contains `text` and has a number above `after`."""

        def look() -> Message | None:
            return next(
                (
                    message
                    for message in self.sim.from_bot(chat, thread)
                    if message.message_id > after and text in message.shown
                ),
                None,
            )

        return await self.wait_for(look, timeout)

    def calls_of(
        self, *methods: str, chat: int | None = None, code: int | None = None
    ) -> list[Call]:
        """The calls of these methods (none: all), for a chat, with a status."""
        return [
            call
            for call in self.calls
            if (not methods or call.method in methods)
            and (chat is None or call.chat == chat)
            and (code is None or call.code == code)
        ]

    # --- answering -------------------------------------------------------------------------------

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        head, _, rest = path.lstrip("/").partition("/")
        body = await read_body(receive)
        if body is None:
            await _refuse(send, Refusal(413, "Request Entity Too Large"))
        elif head == "sim":
            await self._simulate(rest, body, send)
        elif head == "file":
            await self._give_file(rest, send)
        elif head == f"bot{self.token}":
            await self._call(rest, scope, body, receive, send)
        elif head.startswith("bot"):
            await _refuse(send, Refusal(401, "Unauthorized"))
        else:
            await _refuse(send, Refusal(404, "Not Found"))

    async def _call(
        self, name: str, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        method = _NAMES.get(name.lower(), name)
        fault = self._fault(method)
        params = Params({}, {})
        try:
            content_type = request_headers(scope).get("content-type", "")
            params = read_params(scope["query_string"], content_type, body)
            if fault in _REFUSALS:
                raise _REFUSALS[fault]
            if fault is not None and fault != "lost":
                raise _Broken(fault)
            result = await self._perform(method, params, receive)
        except Refusal as refusal:
            self._record(method, params, refusal.code, refusal.description)
            if await self._wait_released(method, receive):
                await _refuse(send, refusal)
        except _Broken as broken:
            self._record(method, params, 0, broken.kind)
            await self._break(broken.kind, receive, send)
        else:
            lost = fault == "lost"
            self._record(method, params, 0 if lost else 200, "lost" if lost else "")
            if lost:
                await _cut(send)
            elif await self._wait_released(method, receive):
                await answer(send, 200, b'{"ok":true,"result":' + _json(result) + b"}")

    async def _perform(self, method: str, params: Params, receive: Receive) -> Any:
        if method == "getUpdates":
            return await self._poll(params, receive)
        if method in _WEBHOOK:
            return self._webhook.call(method, params)
        if method not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        if method in LIMITED and (chat := _chat_of(params)) is not None:
            self.flood.check(chat, self.clock.now())
        return METHODS[method](self.world, params)

    async def _poll(self, params: Params, receive: Receive) -> Any:
        if self._webhook.url:
            raise Refusal(
                409,
                "Conflict: can't use getUpdates method while webhook is active;"
                " use deleteWebhook to delete the webhook first",
            )
        found: list[Any] = []
        refused: list[Refusal] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_hang_up, receive, tasks.cancel_scope)
            try:
                found = await self._poller.poll(params)
            except Refusal as refusal:
                refused.append(refusal)  # a task group would wrap it
            tasks.cancel_scope.cancel()
        if refused:
            raise refused[0]
        return found

    async def _break(self, kind: FaultKind, receive: Receive, send: Send) -> None:
        if kind == "error":
            await _refuse(send, Refusal(500, "Internal Server Error"))
        elif kind == "page":
            page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
            await answer(send, 502, page, {"content-type": "text/html"})
        elif kind == "hang":
            await self._until(self._closing, receive)
        else:
            await _cut(send)

    async def _wait_released(self, method: str, receive: Receive) -> bool:
        """Wait until the answers of a method are not held back; False if the client hangs up."""
        held = self._held.get(method)
        return held is None or await self._until(held, receive)

    async def _until(self, event: anyio.Event, receive: Receive) -> bool:
        """Wait for an event; False if the client hangs up or the server closes meanwhile."""

        async def cancel_when_closing() -> None:
            await self._closing.wait()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_hang_up, receive, tasks.cancel_scope)
            tasks.start_soon(cancel_when_closing)
            await event.wait()
            tasks.cancel_scope.cancel()
        return event.is_set()

    def _fault(self, method: str) -> FaultKind | None:
        for name in (method.lower(), ""):
            fault = self._faults.get(name)
            if fault is not None and fault.times > 0 and (name or method != "getUpdates"):
                fault.times -= 1
                return fault.kind
        return None

    def _record(self, method: str, params: Params, code: int, description: str) -> None:
        self.calls.append(
            Call(
                number=len(self.calls),
                method=method,
                params=params.values,
                at=self.clock.now(),
                code=code,
                chat=_chat_of(params),
                description=description,
            )
        )
        self._notify()

    async def _give_file(self, path: str, send: Send) -> None:
        token, _, name = path.partition("/")
        file = self.world.files.get(name.rpartition("/")[2])
        if token != f"bot{self.token}" or file is None:
            await _refuse(send, Refusal(404, "Not Found"))
        else:
            await answer(send, 200, file.data, {"content-type": "application/octet-stream"})

    # --- the simulation over HTTP ----------------------------------------------------------------

    async def _simulate(self, name: str, body: bytes, send: Send) -> None:
        try:
            given = msgspec.json.decode(body, type=dict[str, Any]) if body else {}
            if name == "calls":
                result: Any = self.calls
            elif name == "fail":
                self.fail(**given)
                result = None
            elif name in ACTIONS:
                result = getattr(self.sim, name)(**given)
            else:
                raise UsageError(f"there is no {name!r}: {', '.join(sorted(_SIM_NAMES))}")
        except (UsageError, TypeError, Refusal, *DECODE_ERRORS) as error:
            body = msgspec.json.encode({"ok": False, "description": str(error)})
            await answer(send, 400, body)
            return
        self._notify()
        await answer(send, 200, b'{"ok":true,"result":' + _json(result) + b"}")


class _Broken(Exception):
    def __init__(self, kind: FaultKind) -> None:
        self.kind: FaultKind = kind
        super().__init__(kind)


_REFUSALS: dict[str | None, Refusal] = {
    "refuse": Refusal(400, "Bad Request: refused by order of the test"),
    "unknown": Refusal(404, "Not Found: method not found"),
}
_WEBHOOK = frozenset({"setWebhook", "deleteWebhook", "getWebhookInfo"})
_NAMES = {name.lower(): name for name in (*METHODS, *_WEBHOOK, "getUpdates")}
_SIM_NAMES = ACTIONS | {"calls", "fail"}


def _chat_of(params: Params) -> int | None:
    try:
        return params.number("chat_id")
    except Refusal:
        return None


def _json(result: Any) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, RawUpdate):
            return value.to_json()
        raise NotImplementedError

    if isinstance(result, list):
        result = [one.to_json() if isinstance(one, RawUpdate) else one for one in result]
    return msgspec.json.encode(result, enc_hook=plain)


async def _refuse(send: Send, refusal: Refusal) -> None:
    body: dict[str, Any] = {
        "ok": False,
        "error_code": refusal.code,
        "description": refusal.description,
    }
    if refusal.parameters:
        body["parameters"] = refusal.parameters
    await answer(send, refusal.code, msgspec.json.encode(body))


async def _cut(send: Send) -> None:
    # A body that is promised and does not come: uvicorn then closes the connection.
    await begin(send, 200, {"content-length": "1000", "content-type": "application/json"})
