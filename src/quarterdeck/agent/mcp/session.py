"""One running MCP server: its loop between two streams, and its calls.

Owns the correlation of requests and answers, and the two ways to withdraw a call. `host` starts it;
the server runs on the `mcp` package's own loop. It does not know tools, and never raises for a
message of the CLI.

The CLI restarts its JSON-RPC ids when it reconnects, while earlier calls may still run. So each
request gets an id of ours, and its own id is restored in the answer.
"""

from __future__ import annotations

import logging
from functools import partial
from types import TracebackType
from typing import Self

import anyio
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

from quarterdeck.agent.mcp.host import ACKNOWLEDGED, Send, id_of, refusal
from quarterdeck.agent.mcp.server import ToolServer

HANDSHAKE_SECONDS = 30.0
"""For the handshake, and for a server to accept a message. A server that hangs at its start must
not block the CLI, which up to 2.1.120 waits without limit."""

WITHDRAWAL_SECONDS = 1.0
"""For telling a server that a call was withdrawn; its loop accepts this at once or is stuck."""

_Answer = JSONRPCResponse | JSONRPCError

_log = logging.getLogger(__name__)
_NO_MESSAGES = "The tool server does not accept messages"


class _Call:
    """A request in the server; settled once, by the first answer or failure."""

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


class Session:
    """One server at work: its loop reads from `_inbound`, and writes through `send`."""

    def __init__(self, server: ToolServer, send: Send) -> None:
        self.ended = False
        self._server = server
        self._forward = send
        self._calls: dict[int, _Call] = {}
        self._last_id = 0
        self._handshake_done = False
        self._inbound, self._server_side = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ]()

    async def run(self) -> None:
        """Serve until cancelled. A server that fails affects nothing else."""
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

    async def answer(self, message: bytes) -> msgspec.Raw:
        """Answer one message from the CLI."""
        try:
            rpc = jsonrpc_message_adapter.validate_json(message)
        except ValidationError:
            return refusal(id_of(message), "Not a JSON-RPC message", INVALID_REQUEST)
        match rpc:
            case JSONRPCRequest():
                return _encode(await self._ask(rpc))
            case JSONRPCNotification() if rpc.method == "notifications/cancelled":
                await self._withdraw(rpc)
            case _:
                await self._notify(rpc)
        return ACKNOWLEDGED

    async def _ask(self, request: JSONRPCRequest) -> _Answer:
        """Pass a request to the server and wait for its answer."""
        if request.method == "initialize":
            return await self._handshake(request)
        if not self._handshake_done:
            # The server's loop answers nothing before a handshake.
            hello = await self._handshake(_handshake_request())
            if isinstance(hello, JSONRPCError):
                return _error(request.id, hello.error.code, hello.error.message)
            await self._notify(
                JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
            )
        return await self._exchange(request)

    async def _notify(self, message: JSONRPCMessage) -> None:
        """Pass on a message that needs no answer."""
        if not await self._hand_over(SessionMessage(message)):
            _log.warning("the tool server %s does not accept messages", self._server.name)

    async def _hand_over(self, item: SessionMessage) -> bool:
        """Whether the server's loop accepted the message."""
        with anyio.move_on_after(HANDSHAKE_SECONDS):
            try:
                await self._inbound.send(item)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return False
            return True
        return False

    async def _withdraw(self, notice: JSONRPCNotification) -> None:
        """Cancel the call that the CLI no longer wants; unknown ones have ended already."""
        wanted = (notice.params or {}).get("requestId")
        for inner, call in reversed(self._calls.items()):
            if call.request_id == wanted and not isinstance(wanted, bool):
                await self._notify(_cancel_notice(inner))
                call.fail(CONNECTION_CLOSED, "The request was cancelled")
                return

    async def _handshake(self, request: JSONRPCRequest) -> _Answer:
        self._handshake_done = True
        answer: _Answer = _error(request.id, REQUEST_TIMEOUT, _NO_MESSAGES)
        with anyio.move_on_after(HANDSHAKE_SECONDS):
            answer = await self._exchange(request)
        self._handshake_done = isinstance(answer, JSONRPCResponse)
        return answer

    async def _exchange(self, request: JSONRPCRequest) -> _Answer:
        self._last_id += 1
        inner = self._last_id
        call = self._calls[inner] = _Call(request.id)
        metadata = ServerMessageMetadata(on_request_unanswered=partial(self._fail_unanswered, call))
        item = SessionMessage(request.model_copy(update={"id": inner}), metadata)
        try:
            if not await self._hand_over(item):
                call.fail(CONNECTION_CLOSED, _NO_MESSAGES)
            return await call.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(WITHDRAWAL_SECONDS, shield=True):
                await self._notify(_cancel_notice(inner))
            raise
        finally:
            del self._calls[inner]

    async def _fail_unanswered(self, call: _Call) -> None:
        call.fail(CONNECTION_CLOSED, "The request was cancelled")

    # From here on the session is the stream that the server's loop writes to. Answers are matched
    # at once; only a task that sends its own messages waits for a slow link.

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


def _handshake_request() -> JSONRPCRequest:
    params = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "quarterdeck", "version": ""},
    }
    return JSONRPCRequest(jsonrpc="2.0", id=0, method="initialize", params=params)


def _cancel_notice(inner: int) -> JSONRPCNotification:
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
