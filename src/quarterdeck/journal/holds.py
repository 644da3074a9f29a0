"""The fold of what holds now: `Holds` from events. Pure; `views` keeps it in a session's view.

Owns which event changes which part, and what ends with a run, a turn and a conversation. It knows
`protocol` only. The fold is total: an event that makes no sense changes nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.protocol.events import (
    ContextChanged,
    Event,
    McpChanged,
    OffersChanged,
    RunStarting,
    TaskChanged,
    TaskEnded,
    TodosChanged,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from quarterdeck.protocol.holds import ContextUse, Holds, RunningTool, Task


def evolve_holds(holds: Holds, event: Event, at: int) -> Holds:
    """What holds after an event, at a time in ms; the same object where nothing changed."""
    match event:
        case ToolStarted(call=call):
            running = RunningTool(
                call=call, tool=event.tool, title=event.title, agent=event.agent, since=at
            )
            return replace(holds, tools=(*_without_call(holds, call), running))
        case ToolEnded(call=call):
            return replace(holds, tools=_without_call(holds, call))
        case TurnEnded() if holds.tools:
            return _turn_ended(holds)
        case TaskChanged(task=task):
            return replace(holds, tasks=_with_task(holds.tasks, task, at))
        case TaskEnded(task=id_):
            return replace(holds, tasks=tuple(one for one in holds.tasks if one.task != id_))
        case TodosChanged(todos=todos, cut=cut):
            return replace(holds, todos=todos, cut=_cut(holds, {"todos": cut}))
        case McpChanged(servers=servers, cut=cut):
            return replace(holds, mcp=servers, cut=_cut(holds, {"mcp": cut}))
        case ContextChanged(tokens=tokens, window=window):
            context = ContextUse(
                tokens=holds.context.tokens if tokens is None else tokens,
                window=holds.context.window if window is None else window,
            )
            return replace(holds, context=context)
        case OffersChanged():
            return _with_offers(holds, event)
    return holds


def begin_run(holds: Holds, event: RunStarting) -> Holds:
    """A process starts. A new conversation has no to-dos and an empty context."""
    holds = end_run(holds)
    if event.origin.cli_session is not None:
        return holds
    return replace(holds, todos=(), context=ContextUse(), cut=_cut(holds, {"todos": 0}))


def end_run(holds: Holds) -> Holds:
    """The process has ended, and with it its tools, tasks and MCP servers."""
    if not (holds.tools or holds.tasks or holds.mcp):
        return holds
    return replace(holds, tools=(), tasks=(), mcp=(), cut=_cut(holds, {"mcp": 0}))


def _with_offers(holds: Holds, event: OffersChanged) -> Holds:
    old = holds.offers
    offers = replace(
        old,
        commands=old.commands if event.commands is None else event.commands,
        models=old.models if event.models is None else event.models,
        agents=old.agents if event.agents is None else event.agents,
    )
    cut = {
        name: event.cut.get(name, 0)
        for name in ("commands", "models", "agents")
        if getattr(event, name) is not None
    }
    return replace(holds, offers=offers, cut=_cut(holds, cut))


def _with_task(tasks: tuple[Task, ...], task: Task, at: int) -> tuple[Task, ...]:
    """The tasks with a new one, or with a newer state of a known one."""
    for place, old in enumerate(tasks):
        # A subagent is known by its call before the CLI reports its id.
        if old.task == task.task or (task.call is not None and old.call == task.call):
            return (*tasks[:place], replace(task, since=old.since), *tasks[place + 1 :])
    return (*tasks, replace(task, since=at))


def _turn_ended(holds: Holds) -> Holds:
    """A turn has ended, with its tool calls; those of background subagents continue."""
    going_on = {task.call for task in holds.tasks if task.background}
    return replace(
        holds, tools=tuple(one for one in holds.tools if one.agent and one.agent in going_on)
    )


def _without_call(holds: Holds, call: str) -> tuple[RunningTool, ...]:
    return tuple(one for one in holds.tools if one.call != call)


def _cut(holds: Holds, cut: dict[str, int]) -> dict[str, int]:
    """How much is left out of each list that was cut."""
    return {name: count for name, count in (holds.cut | cut).items() if count}
