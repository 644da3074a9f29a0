"""The MCP server as a part of the service: for agents that direct agents, and for people."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.config import Settings
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.mcp import AgentLimits, AgentTools, McpEndpoint, PeopleTools, Visitor
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.hub import Hub
from quarterdeck.protocol.roles import Right


class Agents:
    """The tools of agents, and the endpoint at `/mcp`."""

    def __init__(self, hub: Hub, history: HistoryService, settings: Settings) -> None:
        """The rules of a call are those of the caller's session, or of the policy for all."""
        self._tools = AgentTools(hub, changes=hub.worktree_service.changes, search=history.search)
        people = PeopleTools(hub, changes=hub.worktree_service.changes, search=history.search)
        self.endpoint = McpEndpoint(
            hub,
            self._tools,
            lambda caller: hub.policies.rules_for(caller.spec, caller.session),
            people=people,
            visitor_of=_visitor_of,
            rules_for_people=lambda: hub.policies.rules_named(None),
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


def _visitor_of(scope: Mapping[str, object]) -> Visitor | None:
    """The person whom the gate has found."""
    person = scope.get("quarterdeck.person")
    if not isinstance(person, Person) or not person.may(Right.READ):
        return None
    return Visitor(name=person.name, role=person.role)
