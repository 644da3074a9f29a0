"""Agents that direct agents as a part of the service: the MCP server, over hub and history."""

from __future__ import annotations

from quarterdeck.config import Settings
from quarterdeck.fronts.mcp import AgentLimits, AgentTools, McpEndpoint
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.hub import Hub


class Agents:
    """The tools of agents, and the endpoint at `/mcp`."""

    def __init__(self, hub: Hub, history: HistoryService, settings: Settings) -> None:
        """The rules of a call are those of the caller's session."""
        self._tools = AgentTools(hub, changes=hub.worktree_service.changes, search=history.search)
        self.endpoint = McpEndpoint(
            hub, self._tools, lambda caller: hub.policies.rules_for(caller.spec, caller.session)
        )
        self.change(settings)

    def change(self, settings: Settings) -> None:
        """Have other limits from now on."""
        given = settings.agents
        self._tools.limits = AgentLimits(
            depth=given.depth,
            children=given.children,
            spawns_per_hour=given.spawns_per_hour,
            messages_per_hour=given.messages_per_hour,
            family_messages_per_hour=given.family_messages_per_hour,
        )
