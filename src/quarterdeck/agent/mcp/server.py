"""A named group of tools, as an MCP server.

Owns the list of tools and the two requests about it; the `mcp` package's `Server` handles the rest
of the protocol. A server that was written for that package can be used instead. It does not know
how messages travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mcp.server import MCPServer, NotificationOptions, Server, ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListToolsResult,
    PaginatedRequestParams,
    SetLevelRequestParams,
)

from quarterdeck.agent.mcp.results import failure
from quarterdeck.agent.mcp.tools import Tool, ToolContext, check_name
from quarterdeck.domain.errors import UsageError

AnyTool = Tool[..., object] | Callable[..., object]
"""A tool, or a plain function of which one is made with nothing but defaults."""


class ToolServer:
    """Tools under one name. The model sees each as `mcp__<server>__<tool>`."""

    def __init__(
        self,
        name: str,
        tools: Iterable[AnyTool] = (),
        *,
        version: str = "",
        instructions: str | None = None,
    ) -> None:
        self._tools: dict[str, Tool[..., object]] = {}
        self._foreign = False
        self.name = check_name(name, "server")
        self.lowlevel: Server[Any] = Server(
            name,
            version=version,
            instructions=instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.lowlevel.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
        for each in tools:
            self.add(each)

    @classmethod
    def from_mcp(cls, name: str, server: MCPServer[Any] | Server[Any]) -> ToolServer:
        """Serve an existing server of the `mcp` package, resources and prompts included."""
        wrapped = cls(name)
        wrapped._foreign = True
        if isinstance(server, MCPServer):
            wrapped.lowlevel = server._lowlevel_server  # noqa: SLF001 - there is no public way
        else:
            wrapped.lowlevel = server
        return wrapped

    @property
    def tools(self) -> tuple[Tool[..., object], ...]:
        """The tools, in the order in which they were added; none for a foreign server."""
        return tuple(self._tools.values())

    def add(self, added: AnyTool) -> None:
        """Add a tool. While the agent runs, follow this with the host's `tools_changed`."""
        self._refuse_foreign()
        found = added if isinstance(added, Tool) else Tool(added)
        if found.name in self._tools:
            raise UsageError(f"the server {self.name} has two tools named {found.name}")
        self._tools[found.name] = found

    def remove(self, name: str) -> None:
        """Take a tool away. While the agent runs, follow this with the host's `tools_changed`."""
        self._refuse_foreign()
        if self._tools.pop(name, None) is None:
            raise UsageError(f"the server {self.name} has no tool named {name}")

    def options(self) -> InitializationOptions:
        """The server's description in the handshake."""
        changes = NotificationOptions(tools_changed=True, prompts_changed=True)
        return self.lowlevel.create_initialization_options(changes)

    async def _list(
        self, request: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del request, params
        return ListToolsResult(tools=[each.definition for each in self.tools])

    async def _call(
        self, request: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        called = self._tools.get(params.name)
        if called is None:
            there = ", ".join(self._tools) or "none"
            return failure(f"Unknown tool {params.name!r}; the tools of {self.name} are: {there}")
        return await called.run(params.arguments or {}, ToolContext(self.name, request))

    def _refuse_foreign(self) -> None:
        if self._foreign:
            raise UsageError(f"the tools of {self.name} belong to the server it was made from")


async def _set_level(
    request: ServerRequestContext[Any], params: SetLevelRequestParams
) -> EmptyResult:
    # Registered so that the logging capability is announced; the CLI does its own filtering.
    del request, params
    return EmptyResult()
