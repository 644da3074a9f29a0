"""Tools for the agent as Python functions, served to the CLI inside this process.

For MCP the CLI is the client and we are the server: it sends JSON-RPC in `mcp_message` control
requests, and we answer. `tool` describes one function, `results` turns what it returned into
what the model reads, `server` groups tools under a name, and `host` answers the CLI's messages.
The protocol itself is the official `mcp` package's; nothing here parses a method or its params.
"""

from quarterdeck.agent.mcp.host import McpHost, Send
from quarterdeck.agent.mcp.server import ToolServer
from quarterdeck.agent.mcp.tool import Tool, ToolContext, tool

__all__ = ["McpHost", "Send", "Tool", "ToolContext", "ToolServer", "tool"]
