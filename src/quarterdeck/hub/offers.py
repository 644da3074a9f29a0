"""What can be chosen in a session, and its MCP servers, from the CLI's messages. Pure.

Owns commands, models and agents as `initialize` and the start of a turn list them, and the status
of MCP servers. Above it is `holdings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from quarterdeck.hub.clip import first, name_of, text_of
from quarterdeck.protocol.events import Event, McpChanged, OffersChanged
from quarterdeck.protocol.holds import (
    Holds,
    McpServer,
    OfferedAgent,
    OfferedCommand,
    OfferedModel,
)
from quarterdeck.wire.info import AgentInfo, McpServerStatus, ModelInfo, SlashCommand
from quarterdeck.wire.system import Init, InitMcpServer

MOST_OFFERS = 300
MOST_SERVERS = 50
MOST_EFFORTS = 10
LONGEST_SOURCE = 200

_OWN_SOURCE = re.compile(r"\((project|user|plugin)[^()]*\)\s*$")


def turn_started(holds: Holds, init: Init) -> Iterator[Event]:
    """The start of a turn lists MCP servers, and the names of commands and agents.

    Descriptions from other messages stay. Lists that were cut are not changed.
    """
    yield from servers_listed(holds, init.mcp_servers)
    offers, cut = holds.offers, holds.cut
    commands = _unknown(init.slash_commands, {each.name for each in offers.commands})
    agents = _unknown(init.agents, {each.name for each in offers.agents})
    yield from offer_events(
        holds,
        commands=(*offers.commands, *(OfferedCommand(name=name) for name in commands))
        if commands and "commands" not in cut
        else None,
        agents=(*offers.agents, *(OfferedAgent(name=name) for name in agents))
        if agents and "agents" not in cut
        else None,
    )


def _unknown(names: Iterable[str], known: set[str]) -> list[str]:
    clipped = (name_of(name) for name in names if name not in known)
    return [name for name in dict.fromkeys(clipped) if name and name not in known]


def offer_events(
    holds: Holds,
    *,
    commands: Iterable[OfferedCommand] | None = None,
    models: Iterable[OfferedModel] | None = None,
    agents: Iterable[OfferedAgent] | None = None,
) -> Iterator[Event]:
    """The event for changed offers, if they have changed."""
    old, cut = holds.offers, dict[str, int]()
    kept_commands = _changed_items("commands", commands, old.commands, cut)
    kept_models = _changed_items("models", models, old.models, cut)
    kept_agents = _changed_items("agents", agents, old.agents, cut)
    if kept_commands is not None or kept_models is not None or kept_agents is not None:
        yield OffersChanged(commands=kept_commands, models=kept_models, agents=kept_agents, cut=cut)


_Item = TypeVar("_Item")


def _changed_items(
    name: str, items: Iterable[_Item] | None, old: tuple[_Item, ...], cut: dict[str, int]
) -> tuple[_Item, ...] | None:
    """A list within its limit; None if it is missing or unchanged."""
    if items is None:
        return None
    kept, left = first(items, MOST_OFFERS)
    if kept == old:
        return None
    if left:
        cut[name] = left
    return kept


def commands_in(commands: Iterable[SlashCommand]) -> Iterator[OfferedCommand]:
    """Commands within their limits."""
    given = tuple(commands)
    flagged = any(each.builtin for each in given)
    for each in given:
        yield OfferedCommand(
            name=name_of(each.name),
            description=text_of(each.description),
            hint=name_of(each.argument_hint),
            own=_is_own(each, flagged=flagged),
        )


def _is_own(command: SlashCommand, *, flagged: bool) -> bool:
    """Whether it is from the project, the user or a plugin, and not from the CLI.

    2.1.325 flags its own commands; older versions end the description of all others with a source.
    """
    if flagged:
        return not command.builtin
    return _OWN_SOURCE.search(command.description[-LONGEST_SOURCE:]) is not None


def models_in(models: Iterable[ModelInfo]) -> Iterator[OfferedModel]:
    """Models that can be chosen, within their limits."""
    for each in models:
        if not each.disabled:
            yield OfferedModel(
                model=name_of(each.value),
                name=name_of(each.display_name),
                description=text_of(each.description),
                resolved=name_of(each.resolved_model) or None,
                efforts=tuple(
                    name_of(one) for one in (each.supported_effort_levels or ())[:MOST_EFFORTS]
                ),
                auto=each.supports_auto_mode is True,
            )


def agents_in(agents: Iterable[AgentInfo]) -> Iterator[OfferedAgent]:
    """Agents within their limits."""
    for each in agents:
        yield OfferedAgent(
            name=name_of(each.name),
            description=text_of(each.description),
            model=name_of(each.model) or None,
        )


def servers_listed(
    holds: Holds, servers: Iterable[McpServerStatus | InitMcpServer]
) -> Iterator[Event]:
    """The event for the MCP servers, if they have changed."""
    errors = {each.name: each.error for each in holds.mcp}
    # 2.1.37 and 2.1.62 list a server twice that was added in the session.
    by_name = {each.name: each for each in servers}
    given, cut = first(by_name.values(), MOST_SERVERS)
    kept = tuple(_server(each, errors) for each in given)
    if kept != holds.mcp or cut != holds.cut.get("mcp", 0):
        yield McpChanged(servers=kept, cut=cut)


def _server(server: McpServerStatus | InitMcpServer, errors: dict[str, str | None]) -> McpServer:
    name, status = name_of(server.name), name_of(str(server.status))
    if isinstance(server, InitMcpServer):  # without an error
        return McpServer(
            name=name, status=status, error=errors.get(name) if status == "failed" else None
        )
    return McpServer(name=name, status=status, error=text_of(server.error) or None)
