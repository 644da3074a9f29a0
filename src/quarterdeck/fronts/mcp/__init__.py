"""Agents that direct agents: the hub as an MCP server for the agents of its own runs.

`rules` has who may do what, `tools` what each tool does, `server` the endpoint at `/mcp`, and
`bridge` the same for clients that speak MCP over stdin and stdout.
"""

from __future__ import annotations

from quarterdeck.fronts.mcp.rules import AgentLimits
from quarterdeck.fronts.mcp.server import McpEndpoint
from quarterdeck.fronts.mcp.tools import AgentHub, AgentTools

__all__ = ["AgentHub", "AgentLimits", "AgentTools", "McpEndpoint"]
