"""The hub as an MCP server: for the agents of its own runs, that direct agents, and for people.

`rules` has what an agent may do, `tools` what each tool does for an agent, `people` what it does
for a person, `looks` what is told of a session, `server` the endpoint at `/mcp`, and `bridge` the
same for clients that speak MCP over stdin and stdout.
"""

from __future__ import annotations

from quarterdeck.fronts.mcp.people import PeopleTools, Visitor
from quarterdeck.fronts.mcp.rules import AgentLimits
from quarterdeck.fronts.mcp.server import McpEndpoint
from quarterdeck.fronts.mcp.tools import AgentHub, AgentTools

__all__ = ["AgentHub", "AgentLimits", "AgentTools", "McpEndpoint", "PeopleTools", "Visitor"]
