"""What holds in a session now, from the CLI's messages. Pure; below `run`.

Owns which message changes which part: offers and MCP servers (`offers`), to-dos (`todos`), tasks
(`tasks`), and, here, running tools and the use of the context. Each change is a small event of
`protocol.events`; `journal.holds` folds the same events into the session's view. A message that
changes nothing makes no event.

Everything is bounded, whatever the CLI sends (`clip`): counts and lengths of texts have a limit,
and what is left out of a list is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw

from quarterdeck.hub import offers, tasks, todos
from quarterdeck.hub.clip import count_of, id_of, name_of
from quarterdeck.journal.holds import evolve_holds
from quarterdeck.protocol.events import ContextChanged, Event, ToolEnded, ToolStarted
from quarterdeck.protocol.holds import Holds
from quarterdeck.wire.base import Message
from quarterdeck.wire.command_base import decode_answer, decode_or_none
from quarterdeck.wire.commands import (
    ContextUsage,
    GetContextUsage,
    Initialize,
    InitializeAnswer,
    ListModels,
    McpServers,
    McpStatus,
    Models,
)
from quarterdeck.wire.content import ToolResultBlock, ToolUseBlock
from quarterdeck.wire.messages import Assistant, ConversationReset, Result, User
from quarterdeck.wire.rawjson import is_object
from quarterdeck.wire.system import CommandsChanged, CompactBoundary, Init
from quarterdeck.wire.tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)
from quarterdeck.wire.tools import describe

MOST_TOOLS = 50
CONTEXT_STEP = 1000
"""Within a turn a change of the context by fewer tokens makes no event."""

_NO_MODEL = "<synthetic>"
"""The model of a message that the CLI wrote itself."""
_BACKGROUND = b'"backgroundTaskId"'
_RELEVANT = frozenset(
    {
        Assistant,
        User,
        Init,
        Result,
        TaskStarted,
        TaskProgress,
        TaskUpdated,
        TaskNotification,
        BackgroundTasksChanged,
        CommandsChanged,
        CompactBoundary,
        ConversationReset,
    }
)
"""The messages that can change something. Most messages cannot."""


def changes(holds: Holds, message: Message) -> Iterator[Event]:
    """The events that a message makes, after what holds now.

    The caller evolves `holds` with them before the next message.
    """
    if type(message) not in _RELEVANT:
        return
    match message:
        case Assistant():
            yield from _assistant_events(holds, message)
        case User(is_replay=False):
            yield from _results(holds, message)
        case Init():
            yield from offers.turn_started(holds, message)
        case Result():
            yield from _context(holds, window=_window(message))
        case TaskProgress() if not holds.tasks:
            pass  # of a task that is not listed
        case TaskStarted() | TaskProgress() | TaskUpdated() | TaskNotification():
            yield from tasks.task_report_events(holds, message)
        case BackgroundTasksChanged():
            yield from tasks.background_set(holds, message.tasks)
        case CommandsChanged(commands=commands):
            yield from offers.offer_events(holds, commands=offers.commands_in(commands))
        case CompactBoundary(compact_metadata=compacted):
            yield from _context(holds, tokens=compacted.post_tokens, exact=True)
        case ConversationReset():
            yield from _context(holds, tokens=0, exact=True)
            yield from todos.todo_events(holds, ())
        case _:
            pass


def changes_by_answer(holds: Holds, subtype: str, answer: Raw | None) -> Iterator[Event]:
    """The events that the answer to a control request of ours makes."""
    if answer is None or not is_object(answer):
        return
    if subtype == Initialize().subtype:
        found: InitializeAnswer = decode_answer(Initialize(), answer)
        yield from offers.offer_events(
            holds,
            commands=offers.commands_in(found.commands),
            models=offers.models_in(found.models),
            agents=offers.agents_in(found.agents),
        )
    elif subtype == McpStatus().subtype and (servers := decode_or_none(answer, McpServers)):
        yield from offers.servers_listed(holds, servers.mcp_servers)
    elif subtype == ListModels().subtype and (listed := decode_or_none(answer, Models)):
        yield from offers.offer_events(holds, models=offers.models_in(listed.models))
    elif subtype == GetContextUsage().subtype and (use := decode_or_none(answer, ContextUsage)):
        window = use.raw_max_tokens or use.max_tokens
        yield from _context(holds, tokens=use.total_tokens, window=window, exact=True)


def _assistant_events(holds: Holds, message: Assistant) -> Iterator[Event]:
    parent = message.parent_tool_use_id
    for block in message.blocks:
        if isinstance(block, ToolUseBlock) and id_of(block.id) is not None:
            for event in _call_events(holds, block, parent):
                holds = evolve_holds(holds, event, 0)
                yield event
    body = message.message
    if parent is None and body.model != _NO_MODEL and message.error is None and body.usage_json:
        yield from _context(holds, tokens=body.usage.context_tokens)


def _call_events(holds: Holds, block: ToolUseBlock, parent: str | None) -> Iterator[Event]:
    if len(holds.tools) < MOST_TOOLS and all(block.id != one.call for one in holds.tools):
        yield ToolStarted(
            call=block.id,
            tool=name_of(block.name),
            title=describe(block.name, block.input).title,
            agent=id_of(parent),
        )
    if block.name in tasks.SUBAGENT_TOOLS:
        yield from tasks.subagent_called(holds, block)
    elif parent is None:  # a subagent has to-dos of its own
        yield from todos.call_events(holds, block)


def _results(holds: Holds, message: User) -> Iterator[Event]:
    for block in message.blocks:
        if isinstance(block, ToolResultBlock):
            for event in _result(holds, block, message):
                holds = evolve_holds(holds, event, 0)
                yield event


def _result(holds: Holds, block: ToolResultBlock, message: User) -> Iterator[Event]:
    call, outcome = block.tool_use_id, message.tool_use_result
    running = next((one for one in holds.tools if one.call == call), None)
    if running is not None:
        yield ToolEnded(call=call, failed=bool(block.is_error))
        if running.tool in todos.WITH_RESULTS and running.agent is None and outcome:
            yield from todos.result(holds, running.tool, outcome)
    if tasks.known_task(holds, call, call) is not None or _BACKGROUND in bytes(outcome):
        found = decode_or_none(outcome, tasks.Outcome) if outcome else None
        yield from tasks.result(holds, call, found or tasks.Outcome())


def _context(
    holds: Holds,
    *,
    tokens: float | None = None,
    window: float | None = None,
    exact: bool = False,
) -> Iterator[Event]:
    now = holds.context
    new_tokens = None if tokens is None else count_of(tokens)
    new_window = count_of(window) if window else None
    if new_tokens is not None:
        moved = abs(new_tokens - now.tokens)
        if not moved or (not exact and moved < CONTEXT_STEP):
            new_tokens = None
    if new_window == now.window:
        new_window = None
    if new_tokens is not None or new_window is not None:
        yield ContextChanged(tokens=new_tokens, window=new_window)


def _window(result: Result) -> float | None:
    """The window of the model that worked; the largest, where several did."""
    found = (used.context_window for used in result.model_usage.values())
    return max((size for size in found if size), default=None)
