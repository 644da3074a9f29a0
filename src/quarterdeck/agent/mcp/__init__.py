"""Tools for the agent as Python functions, served to the CLI inside this process.

For MCP the CLI is the client and we are the server: it sends JSON-RPC in `mcp_message` control
requests, and we answer. `tools` describes one function, `results` turns what it returned into
what the model reads, `server` groups tools under a name, `session` runs a server, and `host`
answers the CLI's messages. The protocol itself is the official `mcp` package's; nothing here
parses a method or its params. The names are loaded when first used: see `host` for why.
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
