"""What holds in a session now: offers, to-dos, tasks, tools, MCP servers, context.

Owns the small structs that events carry and that a session's view keeps, so that a page needs no
old event. All of them are bounded by `hub.holdings`, which makes them from the CLI's messages. It
does not know those messages.
"""

from __future__ import annotations

from msgspec import field

from quarterdeck.domain.structs import Value


class OfferedCommand(Value):
    """A slash command. `name` has no slash."""

    name: str
    description: str = ""
    hint: str = ""
    """The arguments that it takes, for a person."""
    own: bool = False
    """It is from the project, the user or a plugin, and not from the CLI."""


class OfferedModel(Value):
    """A model that `set_model` accepts as `model`."""

    model: str
    name: str = ""
    description: str = ""
    resolved: str | None = None
    """The full id that the model stands for."""
    efforts: tuple[str, ...] = ()
    """The effort levels that it accepts."""
    auto: bool = False
    """It supports the permission mode `auto`."""


class OfferedAgent(Value):
    """A subagent that the model may start."""

    name: str
    description: str = ""
    model: str | None = None


class Offers(Value):
    """What a person can choose from in the session."""

    commands: tuple[OfferedCommand, ...] = ()
    models: tuple[OfferedModel, ...] = ()
    agents: tuple[OfferedAgent, ...] = ()


class Todo(Value):
    """An entry of the agent's to-do list."""

    todo: str
    """Its id; the number of its place where the CLI gives none."""
    text: str
    status: str = "pending"
    """`pending`, `in_progress` or `completed`."""
    doing: str = ""
    """The text while it is in progress."""


class Task(Value):
    """A shell, subagent or workflow that runs."""

    task: str
    """The CLI's id, for `stop_task`. Until the CLI reports one it is the id of the tool call."""
    kind: str = "agent"
    """`agent`, `shell`, or another type of the CLI."""
    title: str = ""
    background: bool = False
    agent: str | None = None
    """The type of the subagent."""
    call: str | None = None
    """The tool call that started it."""
    status: str = "running"
    """`running`, `pending` or `paused`."""
    last_tool: str | None = None
    tokens: int = 0
    tool_calls: int = 0
    since: int = 0
    """In ms since 1970."""


class RunningTool(Value):
    """A tool call without a result yet: it runs, or waits for an answer."""

    call: str
    tool: str
    title: str = ""
    agent: str | None = None
    """The call of the subagent that made this call; null for the main agent."""
    since: int = 0
    """In ms since 1970."""


class McpServer(Value):
    """An MCP server of the session."""

    name: str
    status: str = ""
    """`connected`, `pending`, `failed`, `needs-auth` or `disabled`."""
    error: str | None = None


class ContextUse(Value):
    """How full the model's context window is."""

    tokens: int = 0
    window: int | None = None
    """The size of the window in tokens; null until the CLI reports it."""


class Holds(Value):
    """All of it. What belongs to a process ends with its run: tools, tasks, MCP servers."""

    offers: Offers = Offers()
    todos: tuple[Todo, ...] = ()
    tasks: tuple[Task, ...] = ()
    tools: tuple[RunningTool, ...] = ()
    """Oldest first. The last one without an `agent` is the current tool."""
    mcp: tuple[McpServer, ...] = ()
    context: ContextUse = ContextUse()
    cut: dict[str, int] = field(default_factory=dict)
    """How many entries are left out of a list that was too long, by the list's name."""
