"""Tools for the agent as Python functions, served to the CLI inside this process.

For MCP the CLI is the client and we are the server: it sends JSON-RPC in `mcp_message` control
requests, and we answer. `tools` describes one function, `results` turns what it returned into
what the model reads, `server` groups tools under a name, `session` runs a server, and `host`
answers the CLI's messages. The protocol itself is the official `mcp` package's; nothing here
parses a method or its params. The names are loaded when first used: see `host` for why.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.agent.mcp.host import McpHost, Send
    from quarterdeck.agent.mcp.server import ToolServer
    from quarterdeck.agent.mcp.tools import Tool, ToolContext, tool

__all__ = ["McpHost", "Send", "Tool", "ToolContext", "ToolServer", "tool"]

_HOMES = {
    "McpHost": "host",
    "Send": "host",
    "Tool": "tools",
    "ToolContext": "tools",
    "ToolServer": "server",
    "tool": "tools",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
