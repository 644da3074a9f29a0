"""The CLI's MCP messages, answered by the servers of this process.

Owns one running session per server, the pairing of requests with their answers, and the two ways
in which a call is withdrawn. Above it stands whoever reads the control channel and hands over each
`mcp_message`; below it each server runs on the `mcp` package's own loop, between two streams.
It does not know what a tool is, and never raises for what the CLI sent.

The CLI counts its JSON-RPC ids anew whenever it connects again, while calls of before may still
run. So each request gets an id of ours on its way in, and its own back on its way out.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self

import anyio
import anyio.abc
import msgspec
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from quarterdeck.agent.mcp.server import ToolServer
from quarterdeck.domain.errors import UsageError

Send = Callable[[str, msgspec.Raw], Awaitable[None]]
"""Takes what a server says unasked (progress, list changes, its own requests) to the CLI."""

HANDSHAKE_SECONDS = 30.0
"""A server whose start hangs must not hang the CLI: up to 2.1.120 it waits for ever."""

WITHDRAWAL_SECONDS = 1.0
"""For telling a server that nobody waits any more; its loop takes this at once or is stuck."""

ACKNOWLEDGED = msgspec.Raw(b'{"jsonrpc":"2.0","result":{},"id":0}')
"""The answer to what needs none. The CLI's first turn does not begin before it has one."""

_Answer = JSONRPCResponse | JSONRPCError

_log = logging.getLogger(__name__)


class McpHost:
    """Answers for a set of named servers. Use it as an async context manager.

    Leaving it stops the servers and cancels the calls that still run; each is then answered with
    an error. A tool that refuses to be cancelled holds up the exit, as it would any task group.
    """

    def __init__(self, servers: Iterable[ToolServer], send: Send) -> None:
        self._servers: dict[str, ToolServer] = {}
        for server in servers:
            if server.name in self._servers:
                raise UsageError(f"two tool servers are named {server.name}")
            self._servers[server.name] = server
        self._send = send
        self._sessions: dict[str, _Session] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The servers' names, for `sdkMcpServers` of the control request `initialize`."""
        return tuple(self._servers)

    async def __aenter__(self) -> Self:
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = tasks
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        tasks.cancel_scope.cancel()
        if isinstance(error, Exception):
            # No session raises, so the caller's error need not come out wrapped in a group.
            await tasks.__aexit__(None, None, None)
            return None
        return await tasks.__aexit__(kind, error, traceback)

    async def handle(self, server_name: str, message: msgspec.Raw | bytes) -> msgspec.Raw:
        """Answer one JSON-RPC message from the CLI; returns what goes into `mcp_response`.

        May be called for many messages at once. Cancelling the call withdraws the request from the
        server. Raises nothing else: what is wrong with the message is said in the answer.
        """
        try:
            rpc = jsonrpc_message_adapter.validate_json(bytes(message))
        except ValidationError:
            return _encode(_error(_id_of(message), INVALID_REQUEST, "Not a JSON-RPC message"))
        session = self._session(server_name)
        if isinstance(session, str):
            request_id = None if isinstance(rpc, JSONRPCNotification) else rpc.id
            return _encode(_error(request_id, INVALID_REQUEST, session))
        match rpc:
            case JSONRPCRequest():
                return _encode(await session.ask(rpc))
            case JSONRPCNotification() if rpc.method == "notifications/cancelled":
                await session.withdraw(rpc)
            case _:
                await session.tell(rpc)
        return ACKNOWLEDGED

    async def tools_changed(self, server_name: str) -> None:
        """Tell the CLI that the list of this server's tools is not what it was."""
        if server_name not in self._servers:
            raise UsageError(f"no tool server is named {server_name}")
        changed = JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed")
        await self._send(server_name, _encode(changed))

    async def manifests(self) -> dict[str, msgspec.Raw]:
        """What each server would answer to its handshake, for `sdkMcpServerManifests` (2.1.270).

        A server that fails is left out: the CLI then asks it, and hears of the error itself.
        """
        found: dict[str, msgspec.Raw] = {}
        for name in self._servers:
            session = self._session(name)
            if isinstance(session, str):
                continue
            hello = await session.ask(_hello())
            if isinstance(hello, JSONRPCResponse):
                manifest = {"initializeResult": hello.result}
                tools = await session.ask(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
                # With more than one page of tools the CLI has to ask for itself.
                if isinstance(tools, JSONRPCResponse) and not tools.result.get("nextCursor"):
                    manifest["toolsListResult"] = tools.result
                found[name] = msgspec.Raw(msgspec.json.encode(manifest))
        return found

    def _session(self, name: str) -> _Session | str:
        """The running session of a server, started if there is none; or why there cannot be one."""
        server = self._servers.get(name)
        if server is None:
            return f"No tool server is named {name!r}; there are: {', '.join(self.names) or 'none'}"
        if self._tasks is None:
            return "The tool servers are not running"
        session = self._sessions.get(name)
        if session is None or session.ended:
            session = self._sessions[name] = _Session(server, self._send)
            self._tasks.start_soon(session.run, name=f"mcp server {name}")
        return session


class _Call:
    """A request on its way through the server; settled once, by whoever comes first."""

    def __init__(self, request_id: RequestId) -> None:
        self.request_id = request_id
        self.answer: _Answer = _error(request_id, INTERNAL_ERROR, "No answer")
        self._settled = anyio.Event()

    def settle(self, answer: _Answer) -> None:
        if not self._settled.is_set():
            self.answer = answer.model_copy(update={"id": self.request_id})
            self._settled.set()

    def fail(self, code: int, text: str) -> None:
        self.settle(_error(self.request_id, code, text))

    async def wait(self) -> _Answer:
        await self._settled.wait()
        return self.answer


class _Session:
    """One server at work: its loop reads from `_inbound`, and writes through `send`."""

    def __init__(self, server: ToolServer, send: Send) -> None:
        self.ended = False
        self._server = server
        self._forward = send
        self._calls: dict[int, _Call] = {}
        self._last_id = 0
        self._greeted = False
        self._inbound, self._server_side = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ]()

    async def run(self) -> None:
        """Serve until cancelled. A server that breaks takes nothing else down with it."""
        reason = "The tool server was stopped"
        try:
            await self._server.lowlevel.run(self._server_side, self, self._server.options())
        except Exception as error:  # noqa: BLE001 - a server's start may raise anything
            _log.exception("the tool server %s failed", self._server.name)
            reason = f"The tool server {self._server.name} failed: {error}"
        finally:
            self.ended = True
            self._inbound.close()
            self._server_side.close()
            for call in self._calls.values():
                call.fail(CONNECTION_CLOSED, reason)

    async def ask(self, request: JSONRPCRequest) -> _Answer:
        """Pass a request to the server and wait for its answer."""
        if request.method == "initialize":
            return await self._greet(request)
        if not self._greeted:
            # With a manifest the CLI shakes no hands, but the server's loop insists on it.
            await self._greet(_hello())
            await self.tell(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
        return await self._exchange(request)

    async def tell(self, message: JSONRPCMessage) -> None:
        """Pass on what needs no answer of the server's."""
        try:
            await self._inbound.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _log.debug("the tool server %s has ended; message dropped", self._server.name)

    async def withdraw(self, notice: JSONRPCNotification) -> None:
        """Cancel the call that the CLI no longer wants; unknown ones have ended already."""
        wanted = (notice.params or {}).get("requestId")
        for inner, call in reversed(self._calls.items()):
            if call.request_id == wanted and not isinstance(wanted, bool):
                await self.tell(_cancelled(inner))
                call.fail(CONNECTION_CLOSED, "The request was cancelled")
                return

    async def _greet(self, request: JSONRPCRequest) -> _Answer:
        self._greeted = True
        answer: _Answer = _error(request.id, REQUEST_TIMEOUT, "The tool server does not start")
        with anyio.move_on_after(HANDSHAKE_SECONDS):
            answer = await self._exchange(request)
        self._greeted = isinstance(answer, JSONRPCResponse)
        return answer

    async def _exchange(self, request: JSONRPCRequest) -> _Answer:
        self._last_id += 1
        inner = self._last_id
        call = self._calls[inner] = _Call(request.id)
        unanswered = partial(self._unanswered, call)
        try:
            await self._inbound.send(
                SessionMessage(
                    request.model_copy(update={"id": inner}),
                    ServerMessageMetadata(on_request_unanswered=unanswered),
                )
            )
            return await call.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            call.fail(CONNECTION_CLOSED, "The tool server has ended")
            return await call.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(WITHDRAWAL_SECONDS, shield=True):
                await self.tell(_cancelled(inner))
            raise
        finally:
            del self._calls[inner]

    async def _unanswered(self, call: _Call) -> None:
        call.fail(CONNECTION_CLOSED, "The request was cancelled")

    # What follows makes the session the stream into which the server's loop writes. Answers are
    # paired here at once; only the task that sends something unasked waits for a slow link.

    async def send(self, item: SessionMessage, /) -> None:
        """Take one message from the server."""
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if isinstance(message.id, int) and (call := self._calls.get(message.id)):
                call.settle(message)
            return
        try:
            await self._forward(self._server.name, _encode(message))
        except Exception as error:
            _log.warning(
                "a message of the tool server %s was lost", self._server.name, exc_info=True
            )
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Nothing to close: the session ends with its loop."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return None


class _Identified(msgspec.Struct):
    id: int | str | None = None


def _id_of(message: msgspec.Raw | bytes) -> RequestId | None:
    """The id of a message that is otherwise broken, so that its sender learns which one it was."""
    try:
        return msgspec.json.decode(message, type=_Identified).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _hello() -> JSONRPCRequest:
    params = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "quarterdeck", "version": ""},
    }
    return JSONRPCRequest(jsonrpc="2.0", id=0, method="initialize", params=params)


def _cancelled(inner: int) -> JSONRPCNotification:
    return JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": inner}
    )


def _error(request_id: RequestId | None, code: int, text: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=text))


def _encode(message: JSONRPCMessage) -> msgspec.Raw:
    try:
        return msgspec.Raw(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        request_id = None if isinstance(message, JSONRPCNotification) else message.id
        return _encode(_error(request_id, INTERNAL_ERROR, f"The answer is not valid JSON: {error}"))
