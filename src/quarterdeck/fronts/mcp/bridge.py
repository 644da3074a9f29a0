"""The hub's MCP server over stdin and stdout, for clients that speak no HTTP.

It decides nothing and keeps nothing: each request goes on to `/mcp` of the hub with the token that
it was started with, and the hub's answer comes back. The official `mcp` package is on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from quarterdeck.client.calls import HubAddress
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.fronts.mcp.server import NAME
from quarterdeck.fronts.mcp.tools import WAIT_SECONDS
from quarterdeck.runtime.client_tls import client_context

if TYPE_CHECKING:
    import httpx2
    from mcp.client.session import ClientSession
    from mcp.server.lowlevel.server import Server

SECONDS = WAIT_SECONDS + 60.0
"""For one answer: the longest `wait`, and some time for the hub."""


async def run_bridge(where: HubAddress) -> None:
    """Serve until stdin ends. Raises `LinkRefused` if the hub does not take the token."""
    import httpx2

    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {where.token}"},
        timeout=SECONDS,
        trust_env=False,
        follow_redirects=False,
        verify=client_context(where.ca_file) if where.base.startswith("https:") else False,
    )
    url = f"{where.base}/mcp"
    async with http:
        await _check(http, url)
        await _serve(http, url)


async def _serve(http: httpx2.AsyncClient, url: str) -> None:
    from mcp.client.session import ClientSession
    from mcp.client.streamable_http import streamable_http_client
    from mcp.server.stdio import stdio_server

    async with (
        streamable_http_client(url, http_client=http) as (read, write, *_),
        ClientSession(read, write) as hub,
    ):
        await hub.initialize()
        server = _server(hub)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


async def _check(http: httpx2.AsyncClient, url: str) -> None:
    """Ask once, for an error that a person understands."""
    import httpx2

    try:
        answer = await http.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise LinkRefused(f"no hub answers at {url}: {error}") from error
    if answer.status_code == 401:
        raise LinkRefused(
            "the hub does not take this token: it must be a person's token, or the token of an"
            " agent's run that has not ended"
        )
    if answer.status_code != 405:  # it takes POST only
        raise LinkRefused(f"{url} answered with HTTP {answer.status_code}")


def _server(hub: ClientSession) -> Server[Any]:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await hub.list_tools()

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        with anyio.fail_after(SECONDS):
            return await hub.call_tool(params.name, params.arguments, meta=context.meta)

    return Server(NAME, version="1", on_list_tools=list_tools, on_call_tool=call_tool)
