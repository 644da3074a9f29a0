"""What holds in a session now, from the CLI's messages. Pure; below `run`.

Owns the translation of messages into the small events of `protocol.events` that tell a change of
offers, to-dos, tasks, tools, MCP servers and context. `journal.holds` folds the same events into
the session's view. A message that changes nothing makes no event.

Everything is bounded, whatever the CLI sends: counts and lengths of texts have a limit, and what
is left out is counted (`cut`). Ids that are too long are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.journal.holds import evolve_holds
from quarterdeck.protocol.events import (
    ContextChanged,
    Event,
    McpChanged,
    OffersChanged,
    TaskChanged,
    TaskEnded,
    TodosChanged,
    ToolEnded,
    ToolStarted,
)
from quarterdeck.protocol.holds import (
    Holds,
    McpServer,
    OfferedAgent,
    OfferedCommand,
    OfferedModel,
    Task,
    Todo,
)
from quarterdeck.wire.base import Message
from quarterdeck.wire.commands import (
    GetContextUsage,
    Initialize,
    InitializeAnswer,
    ListModels,
    McpStatus,
    decode_answer,
    decode_or_none,
)
from quarterdeck.wire.commands.conversation import ContextUsage
from quarterdeck.wire.commands.mcp import McpServers
from quarterdeck.wire.commands.settings import Models
from quarterdeck.wire.content import ToolResultBlock, ToolUseBlock
from quarterdeck.wire.info import AgentInfo, McpServerStatus, ModelInfo, SlashCommand
from quarterdeck.wire.messages import Assistant, ConversationReset, Result, User
from quarterdeck.wire.system import CommandsChanged, CompactBoundary, Init, InitMcpServer
from quarterdeck.wire.tasks import (
    BackgroundTask,
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)
from quarterdeck.wire.tools import describe, one_line

MOST_OFFERS = 300
MOST_TODOS = 100
MOST_TASKS = 50
MOST_TOOLS = 50
MOST_SERVERS = 50
NAME = 100
"""Characters of a name, a status or a type."""
TEXT = 200
"""Characters of a description, a title or an error."""
LONGEST_ID = 200
CONTEXT_STEP = 1000
"""Within a turn the context is told again when it has changed by so many tokens."""
_MOST_TOKENS = 2**53

_SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
_NO_MODEL = "<synthetic>"
_KINDS = {"local_agent": "agent", "local_bash": "shell"}


class _Todo(msgspec.Struct):
    """An entry of TodoWrite's input."""

    content: str = ""
    status: str = "pending"
    active: str = msgspec.field(name="activeForm", default="")


class _Todos(msgspec.Struct):
    todos: tuple[_Todo, ...] = ()


class _ListedTodo(msgspec.Struct):
    """A to-do in the results of TaskCreate and TaskList."""

    id: str = ""
    subject: str = ""
    status: str = "pending"


class _TodoUpdate(msgspec.Struct):
    """The input of TaskUpdate."""

    task: str = msgspec.field(name="taskId", default="")
    subject: str | None = None
    active: str | None = msgspec.field(name="activeForm", default=None)


class _StatusChange(msgspec.Struct):
    to: str = ""


class _Outcome(msgspec.Struct):
    """The members of `tool_use_result` that tell of to-dos and tasks."""

    task: _ListedTodo | None = None
    tasks: tuple[_ListedTodo, ...] | None = None
    todo: str = msgspec.field(name="taskId", default="")
    change: _StatusChange | None = msgspec.field(name="statusChange", default=None)
    status: str = ""
    agent_id: str = msgspec.field(name="agentId", default="")
    background_task: str = msgspec.field(name="backgroundTaskId", default="")


class Holdings:
    """What holds in the session of one run, kept up to date with its events."""

    def __init__(self, holds: Holds | None = None) -> None:
        self.holds = holds or Holds()

    def receive(self, message: Message, at: int) -> list[Event]:
        """What a message of the CLI changes, at a time in ms."""
        return self._keep(changes(self.holds, message), at)

    def answered(self, subtype: str, answer: Raw | None, at: int) -> list[Event]:
        """What the answer to a control request changes."""
        return self._keep(changes_by_answer(self.holds, subtype, answer), at)

    def evolve(self, event: Event, at: int) -> None:
        """An event that others made, such as the end of a turn."""
        self.holds = evolve_holds(self.holds, event, at)

    def _keep(self, events: Iterator[Event], at: int) -> list[Event]:
        found = list(events)
        for event in found:
            self.evolve(event, at)
        return found


def changes(holds: Holds, message: Message) -> Iterator[Event]:
    """The events that a message makes, after what holds now."""
    match message:
        case Assistant():
            yield from _spoken(holds, message)
        case User() if not message.is_replay:
            yield from _results(holds, message)
        case Init():
            yield from _init(holds, message)
        case Result():
            yield from _context(holds, window=_window(message), exact=True)
        case TaskStarted() | TaskProgress() | TaskUpdated() | TaskNotification():
            yield from _task(holds, message)
        case BackgroundTasksChanged(tasks=tasks):
            yield from _background(holds, tasks)
        case CommandsChanged(commands=commands):
            yield from _offers(holds, commands=_commands(commands))
        case CompactBoundary(compact_metadata=compacted):
            yield from _context(holds, tokens=compacted.post_tokens, exact=True)
        case ConversationReset():
            yield from _context(holds, tokens=0, exact=True)
            yield from _todos(holds, ())
        case _:
            pass


def changes_by_answer(holds: Holds, subtype: str, answer: Raw | None) -> Iterator[Event]:
    """The events that the answer to a control request of ours makes."""
    if answer is None:
        return
    if subtype == Initialize().subtype:
        with_all: InitializeAnswer = decode_answer(Initialize(), answer)
        yield from _offers(
            holds,
            commands=_commands(with_all.commands),
            models=_models(with_all.models),
            agents=_agents(with_all.agents),
        )
    elif subtype == McpStatus().subtype and (servers := decode_or_none(answer, McpServers)):
        yield from _mcp(holds, servers.mcp_servers)
    elif subtype == ListModels().subtype and (listed := decode_or_none(answer, Models)):
        yield from _offers(holds, models=_models(listed.models))
    elif subtype == GetContextUsage().subtype and (use := decode_or_none(answer, ContextUsage)):
        window = use.raw_max_tokens or use.max_tokens or None
        yield from _context(holds, tokens=use.total_tokens, window=window, exact=True)


# --- tools and to-dos ----------------------------------------------------------------------------


def _spoken(holds: Holds, message: Assistant) -> Iterator[Event]:
    parent = message.parent_tool_use_id
    for block in message.blocks:
        if isinstance(block, ToolUseBlock) and _is_id(block.id):
            for event in _called(holds, block, parent):
                holds = evolve_holds(holds, event, 0)
                yield event
    body = message.message
    if parent is None and body.model != _NO_MODEL and message.error is None and body.usage_json:
        yield from _context(holds, tokens=body.usage.context_tokens)


def _called(holds: Holds, block: ToolUseBlock, parent: str | None) -> Iterator[Event]:
    if len(holds.tools) < MOST_TOOLS and all(block.id != one.call for one in holds.tools):
        yield ToolStarted(
            call=block.id,
            tool=one_line(block.name, NAME),
            title=describe(block.name, block.input).title,
            agent=parent if parent and _is_id(parent) else None,
        )
    if block.name in _SUBAGENT_TOOLS:
        # Only from 2.1.62 on the CLI tells of subagents by itself.
        told = block.arguments
        yield from _task_changed(
            holds,
            Task(
                task=block.id,
                call=block.id,
                title=_text_of(told.get("description")),
                agent=_text_of(told.get("subagent_type")) or None,
            ),
        )
    elif parent is not None:
        return  # a subagent has to-dos of its own
    elif block.name == "TodoWrite" and (given := decode_or_none(block.input, _Todos)) is not None:
        yield from _todos(
            holds,
            (
                Todo(todo=str(place), text=each.content, status=each.status, doing=each.active)
                for place, each in enumerate(given.todos, 1)
            ),
        )
    elif block.name == "TaskUpdate" and (update := decode_or_none(block.input, _TodoUpdate)):
        yield from _todos(holds, (_updated(todo, update) for todo in holds.todos))


def _updated(todo: Todo, update: _TodoUpdate) -> Todo:
    if todo.todo != update.task:
        return todo
    return replace(todo, text=update.subject or todo.text, doing=update.active or todo.doing)


def _results(holds: Holds, message: User) -> Iterator[Event]:
    for block in message.blocks:
        if isinstance(block, ToolResultBlock):
            for event in _result(holds, block, message):
                holds = evolve_holds(holds, event, 0)
                yield event


def _result(holds: Holds, block: ToolResultBlock, message: User) -> Iterator[Event]:
    call = block.tool_use_id
    running = next((one for one in holds.tools if one.call == call), None)
    if running is not None:
        yield ToolEnded(call=call, failed=bool(block.is_error))
        if message.parent_tool_use_id is None and running.tool.startswith("Task"):
            yield from _todo_results(holds, running.tool, _outcome_of(message))
    if running is not None or _known_task(holds, call, call) is not None:
        yield from _task_results(holds, call, _outcome_of(message))


def _outcome_of(message: User) -> _Outcome:
    found = message.tool_use_result
    return (decode_or_none(found, _Outcome) if found else None) or _Outcome()


def _todo_results(holds: Holds, tool: str, outcome: _Outcome) -> Iterator[Event]:
    match tool, outcome:
        case "TaskCreate", _Outcome(task=_ListedTodo(id=str(id_), subject=text)) if id_:
            others = (one for one in holds.todos if one.todo != id_)
            yield from _todos(holds, (*others, Todo(todo=id_, text=text)))
        case "TaskUpdate", _Outcome(todo=id_, change=_StatusChange(to="deleted")):
            yield from _todos(holds, (one for one in holds.todos if one.todo != id_))
        case "TaskUpdate", _Outcome(todo=id_, change=_StatusChange(to=status)) if status:
            yield from _todos(
                holds,
                (replace(one, status=status) if one.todo == id_ else one for one in holds.todos),
            )
        case "TaskList", _Outcome(tasks=tuple(listed)):
            known = {one.todo: one.doing for one in holds.todos}
            yield from _todos(
                holds,
                (
                    Todo(
                        todo=one.id,
                        text=one.subject,
                        status=one.status,
                        doing=known.get(one.id, ""),
                    )
                    for one in listed
                ),
            )
        case _:
            pass


def _todos(holds: Holds, todos: Iterable[Todo]) -> Iterator[Event]:
    cut, given = _first(todos, MOST_TODOS)
    kept = tuple(
        Todo(
            todo=one_line(each.todo, NAME),
            text=one_line(each.text, TEXT),
            status=one_line(each.status, NAME),
            doing=one_line(each.doing, TEXT),
        )
        for each in given
    )
    if kept != holds.todos or cut != holds.cut.get("todos", 0):
        yield TodosChanged(todos=kept, cut=cut)


# --- tasks ---------------------------------------------------------------------------------------


def _task(
    holds: Holds, message: TaskStarted | TaskProgress | TaskUpdated | TaskNotification
) -> Iterator[Event]:
    id_ = message.task_id
    known = _known_task(holds, id_, getattr(message, "tool_use_id", None))
    match message:
        case TaskStarted():
            old = known or Task(task=id_)
            started = replace(
                old,
                task=id_,
                kind=_kind(message.task_type) if message.task_type else old.kind,
                title=_text_of(message.description) or old.title,
                agent=_name_of(message.subagent_type) or old.agent,
                call=_call_of(message.tool_use_id) or old.call,
                background=old.background
                if message.is_backgrounded is None
                else message.is_backgrounded,
            )
            yield from _task_changed(holds, started)
        case TaskProgress(usage=usage) if known is not None:
            told = replace(known, task=id_, last_tool=_name_of(message.last_tool_name))
            if usage is not None:
                tokens, calls = _count(usage.total_tokens), _count(usage.tool_uses)
                told = replace(told, tokens=tokens, tool_calls=calls)
            yield from _task_changed(holds, told)
        case TaskUpdated(patch=patch) if known is not None:
            if patch.status is not None and patch.status.ended:
                yield TaskEnded(task=known.task, status=str(patch.status.value))
                return
            status = known.status if patch.status is None else _text_of(patch.status.value)
            told = replace(known, status=status, title=_text_of(patch.description) or known.title)
            if patch.is_backgrounded is not None:
                told = replace(told, background=patch.is_backgrounded)
            yield from _task_changed(holds, told)
        case TaskNotification(status=ended) if known is not None:
            yield TaskEnded(task=known.task, status=one_line(str(ended.value), NAME))
        case _:
            pass


def _background(holds: Holds, tasks: tuple[BackgroundTask, ...]) -> Iterator[Event]:
    """The whole set of background tasks: others that were in the background have ended."""
    listed = {each.task_id for each in tasks}
    for known in holds.tasks:
        if known.background and known.task not in listed:
            yield TaskEnded(task=known.task)
    for each in tasks:
        old = _known_task(holds, each.task_id, None)
        told = replace(
            old or Task(task=each.task_id, title=_text_of(each.description)),
            kind=_kind(each.task_type),
            agent=_name_of(each.subagent_type),
            background=True,
        )
        for event in _task_changed(holds, told):
            holds = evolve_holds(holds, event, 0)
            yield event


def _task_results(holds: Holds, call: str, outcome: _Outcome) -> Iterator[Event]:
    """A call has its result: a subagent has ended, or it or a shell runs in the background."""
    known = _known_task(holds, call, call)
    if outcome.background_task:
        if _known_task(holds, outcome.background_task, call) is None:
            started = Task(task=outcome.background_task, kind="shell", background=True, call=call)
            tool = next((one for one in holds.tools if one.call == call), None)
            yield from _task_changed(holds, replace(started, title=tool.title if tool else ""))
        elif known is not None and not known.background:
            yield from _task_changed(holds, replace(known, background=True))
    elif known is None:
        return
    elif outcome.status == "async_launched":
        id_ = outcome.agent_id if _is_id(outcome.agent_id) else known.task
        yield from _task_changed(holds, replace(known, task=id_, background=True))
    elif not known.background:
        yield TaskEnded(task=known.task, status=one_line(outcome.status, NAME))


def _task_changed(holds: Holds, task: Task) -> Iterator[Event]:
    if not _is_id(task.task):
        return
    known = _known_task(holds, task.task, task.call)
    if known is None and len(holds.tasks) >= MOST_TASKS:
        return
    told = replace(task, since=0)
    if known is None or replace(known, since=0) != told:
        yield TaskChanged(task=told)


def _known_task(holds: Holds, id_: str, call: str | None) -> Task | None:
    for each in holds.tasks:
        if each.task == id_ or (call is not None and each.call == call):
            return each
    return None


def _kind(task_type: str) -> str:
    return _KINDS.get(task_type) or one_line(task_type, NAME) or "agent"


# --- offers, servers, context --------------------------------------------------------------------


def _init(holds: Holds, init: Init) -> Iterator[Event]:
    yield from _mcp(holds, init.mcp_servers)
    # It tells names only; what is known of them by other messages stays.
    offers = holds.offers
    commands = {each.name for each in offers.commands}
    agents = {each.name for each in offers.agents}
    new_commands = [name for name in init.slash_commands if one_line(name, NAME) not in commands]
    new_agents = [name for name in init.agents if one_line(name, NAME) not in agents]
    told = holds.cut
    yield from _offers(
        holds,
        commands=(*offers.commands, *_commands(SlashCommand(name=name) for name in new_commands))
        if new_commands and not told.get("commands")
        else None,
        agents=(*offers.agents, *_agents(AgentInfo(name=name) for name in new_agents))
        if new_agents and not told.get("agents")
        else None,
    )


def _offers(
    holds: Holds,
    *,
    commands: Iterable[OfferedCommand] | None = None,
    models: Iterable[OfferedModel] | None = None,
    agents: Iterable[OfferedAgent] | None = None,
) -> Iterator[Event]:
    old, cut = holds.offers, dict[str, int]()
    kept_commands = _offered("commands", commands, old.commands, cut)
    kept_models = _offered("models", models, old.models, cut)
    kept_agents = _offered("agents", agents, old.agents, cut)
    if kept_commands is not None or kept_models is not None or kept_agents is not None:
        yield OffersChanged(commands=kept_commands, models=kept_models, agents=kept_agents, cut=cut)


_Item = TypeVar("_Item")


def _offered(
    name: str, items: Iterable[_Item] | None, old: tuple[_Item, ...], cut: dict[str, int]
) -> tuple[_Item, ...] | None:
    """A list within its limit; None where it is not told, or tells nothing new."""
    if items is None:
        return None
    left, kept = _first(items, MOST_OFFERS)
    if kept == old:
        return None
    if left:
        cut[name] = left
    return kept


def _commands(commands: Iterable[SlashCommand]) -> Iterator[OfferedCommand]:
    for each in commands:
        yield OfferedCommand(
            name=one_line(each.name, NAME),
            description=one_line(each.description, TEXT),
            hint=one_line(each.argument_hint, NAME),
        )


def _models(models: Iterable[ModelInfo]) -> Iterator[OfferedModel]:
    for each in models:
        if not each.disabled:
            yield OfferedModel(
                model=one_line(each.value, NAME),
                name=one_line(each.display_name, NAME),
                description=one_line(each.description, TEXT),
                resolved=_name_of(each.resolved_model),
                efforts=tuple(
                    one_line(one, NAME) for one in (each.supported_effort_levels or ())[:10]
                ),
            )


def _agents(agents: Iterable[AgentInfo]) -> Iterator[OfferedAgent]:
    for each in agents:
        yield OfferedAgent(
            name=one_line(each.name, NAME),
            description=one_line(each.description, TEXT),
            model=_name_of(each.model),
        )


def _mcp(holds: Holds, servers: Iterable[McpServerStatus | InitMcpServer]) -> Iterator[Event]:
    errors = {each.name: each.error for each in holds.mcp}
    # 2.1.37 and 2.1.62 list a server twice that was added in the session.
    told = {each.name: each for each in servers}
    cut, given = _first(told.values(), MOST_SERVERS)
    kept = tuple(_server(each, errors) for each in given)
    if kept != holds.mcp or cut != holds.cut.get("mcp", 0):
        yield McpChanged(servers=kept, cut=cut)


def _server(server: McpServerStatus | InitMcpServer, errors: dict[str, str | None]) -> McpServer:
    name, status = one_line(server.name, NAME), one_line(str(server.status), NAME)
    if isinstance(server, InitMcpServer):  # it tells no error
        return McpServer(
            name=name, status=status, error=errors.get(name) if status == "failed" else None
        )
    return McpServer(name=name, status=status, error=_text_of(server.error) or None)


def _context(
    holds: Holds,
    *,
    tokens: float | None = None,
    window: float | None = None,
    exact: bool = False,
) -> Iterator[Event]:
    now = holds.context
    new_tokens = None if tokens is None else _count(tokens)
    new_window = _count(window) if window else None
    if new_tokens is not None:
        moved = abs(new_tokens - now.tokens)
        if not moved or (not exact and moved < CONTEXT_STEP):
            new_tokens = None
    if new_window == now.window:
        new_window = None
    if new_tokens is not None or new_window is not None:
        yield ContextChanged(tokens=new_tokens, window=new_window)


def _window(result: Result) -> float | None:
    """The window of the model that a turn was put to: the largest, where several worked."""
    found = (used.context_window for used in (result.model_usage or {}).values())
    return max((size for size in found if size), default=None)


# --- bounds --------------------------------------------------------------------------------------


def _first(items: Iterable[_Item], most: int) -> tuple[int, tuple[_Item, ...]]:
    """How many are left out, and those that are not."""
    found = tuple(items)
    return max(0, len(found) - most), found[:most]


def _is_id(text: str) -> bool:
    return 0 < len(text) <= LONGEST_ID


def _call_of(call: str | None) -> str | None:
    return call if call and _is_id(call) else None


def _text_of(text: object) -> str:
    return one_line(text, TEXT) if isinstance(text, str) else ""


def _name_of(text: str | None) -> str | None:
    return one_line(text, NAME) or None if text else None


def _count(number: float) -> int:
    return int(min(max(number, 0), _MOST_TOKENS))
