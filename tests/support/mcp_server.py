"""A small MCP server for the tests, run as a program: it tells the time."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("clock")


@server.tool()
def now() -> str:
    """Tell the time."""
    return "noon"


if __name__ == "__main__":
    server.run()
