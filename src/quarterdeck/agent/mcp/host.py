"""The CLI's MCP messages, answered by the servers of this process.

Owns the named servers and one running session for each, started by its first message. The `Agent`
passes each `mcp_message` to it. It never raises for a message of the CLI.

Every agent has a host, most have no tools, and the `mcp` package takes a second to import. So
nothing here imports it: it is loaded with the first tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import anyio.abc
import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS

if TYPE_CHECKING:
    from quarterdeck.agent.mcp.server import ToolServer
    from quarterdeck.agent.mcp.session import Session

Send = Callable[[str, msgspec.Raw], Awaitable[None]]
"""Sends a server's own messages (progress, list changes, requests) to the CLI."""

ACKNOWLEDGED = msgspec.Raw(b'{"jsonrpc":"2.0","result":{},"id":0}')
"""The answer to a notification. The CLI's first turn does not begin without one."""

INVALID_REQUEST = -32600


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
        self._sessions: dict[str, Session] = {}
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
        """Answer one JSON-RPC message from the CLI; returns the body of `mcp_response`.

        May be called for many messages at once. Cancelling the call withdraws the request from the
        server. Raises nothing else: the answer reports errors in the message.
        """
        session = self._session(server_name)
        if isinstance(session, str):
            return refusal(id_of(message), session)
        return await session.answer(bytes(message))

    async def tools_changed(self, server_name: str) -> None:
        """Tell the CLI that the list of this server's tools has changed."""
        if server_name not in self._servers:
            raise UsageError(f"no tool server is named {server_name}")
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        await self._send(server_name, msgspec.Raw(msgspec.json.encode(changed)))

    def _session(self, name: str) -> Session | str:
        """The running session of a server, started if necessary; or the reason why there is
        none.
        """
        server = self._servers.get(name)
        if server is None:
            return f"No tool server is named {name!r}; there are: {', '.join(self.names) or 'none'}"
        if self._tasks is None:
            return "The tool servers are not running"
        from quarterdeck.agent.mcp.session import Session  # late: see the top

        session = self._sessions.get(name)
        if session is None or session.ended:
            session = self._sessions[name] = Session(server, self._send)
            self._tasks.start_soon(session.run, name=f"mcp server {name}")
        return session


class _Identified(msgspec.Struct):
    id: int | str | None = None


def id_of(message: msgspec.Raw | bytes) -> int | str | None:
    """The id of a message that is not understood, so that its sender learns which one it was."""
    try:
        return msgspec.json.decode(message, type=_Identified).id
    except DECODE_ERRORS:
        return None


def refusal(request_id: int | str | None, text: str, code: int = INVALID_REQUEST) -> msgspec.Raw:
    """A JSON-RPC error."""
    error = {"code": code, "message": text}
    return msgspec.Raw(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error}))
