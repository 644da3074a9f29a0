"""A real MCP client for the host of in-process tools, with memory in place of the CLI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from mcp import ClientSession
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, JSONRPCRequest, jsonrpc_message_adapter

from quarterdeck.agent.mcp import McpHost, ToolServer

_ToClient = MemoryObjectSendStream[SessionMessage | Exception]


class Client:
    """The session of the client, and all that servers said unasked."""

    def __init__(self, session: ClientSession, host: McpHost, heard: list[msgspec.Raw]) -> None:
        self.session = session
        self.host = host
        self.heard = heard

    async def call(self, name: str, /, **arguments: object) -> CallToolResult:
        """Call a tool; the session checks the answer against the tool's output schema."""
        result = await self.session.call_tool(name, arguments)
        assert isinstance(result, CallToolResult)
        return result


@asynccontextmanager
async def connected(servers: Iterable[ToolServer], name: str) -> AsyncIterator[Client]:
    """Shake hands with the server `name`, through `McpHost.handle` as the CLI would."""
    to_client, client_reads = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    client_writes, from_client = anyio.create_memory_object_stream[SessionMessage](100)
    heard: list[msgspec.Raw] = []

    async def unasked(server_name: str, message: msgspec.Raw) -> None:
        assert server_name == name
        heard.append(message)
        await _deliver(to_client, message)

    async def pass_on(host: McpHost, item: SessionMessage) -> None:
        asked = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        answer = await host.handle(name, msgspec.Raw(asked))
        if isinstance(item.message, JSONRPCRequest):
            await _deliver(to_client, answer)

    async def pump(host: McpHost) -> None:
        async with anyio.create_task_group() as passing:
            async for item in from_client:
                passing.start_soon(pass_on, host, item)

    async with (
        to_client,
        from_client,
        McpHost(servers, unasked) as host,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(pump, host)
        async with ClientSession(client_reads, client_writes) as session:
            await session.initialize()
            yield Client(session, host, heard)
        tasks.cancel_scope.cancel()


async def _deliver(to_client: _ToClient, message: msgspec.Raw) -> None:
    await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(bytes(message))))
