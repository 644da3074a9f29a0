"""Tools for the agent as Python functions, served to the CLI inside this process.

For MCP the CLI is the client and we are the server: it sends JSON-RPC in `mcp_message` control
requests, and we answer. `tools` describes one function, `results` converts its return value for the
model, `server` groups tools under a name, `session` runs a server, and `host` answers the CLI's
messages. The official `mcp` package implements the protocol; nothing here parses a method or its
params. Names are imported when they are first used: see `host`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.agent.mcp.host import McpHost, Send
    from quarterdeck.agent.mcp.server import ToolServer
    from quarterdeck.agent.mcp.tools import Tool, ToolContext, tool

__all__ = ["McpHost", "Send", "Tool", "ToolContext", "ToolServer", "tool"]

__getattr__ = load_later(
    __name__,
    {
        "host": ("McpHost", "Send"),
        "server": ("ToolServer",),
        "tools": ("Tool", "ToolContext", "tool"),
    },
)
