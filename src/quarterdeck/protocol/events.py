"""What happens to a session, as the journal keeps it.

One union of frozen structs. An event is a fact: it is never changed, and what we make of it (a
state, a list of open questions, a cost) is folded from the events and can be thrown away.

The CLI's own words are events too (`Said`), byte for byte. Token deltas are not: they are
delivered live and superseded by the message that follows.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.protocol.holds import (
    McpServer,
    OfferedAgent,
    OfferedCommand,
    OfferedModel,
    Task,
    Todo,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec, SessionState


class Event(Value, tag_field="kind"):
    """The base of all events. When it happened and its number are the journal's."""


# --- the session ---------------------------------------------------------------------------------


class SessionCreated(Event, tag="session.created"):
    """A session exists."""

    spec: SessionSpec
    by: str
    parent: str | None = None
    """The session that it was forked from."""


class SessionRenamed(Event, tag="session.renamed"):
    """It has another name."""

    name: str
    by: str


class SessionArchived(Event, tag="session.archived"):
    """It is put away, or (`archived` false) taken out again."""

    archived: bool
    by: str


class SpecChanged(Event, tag="session.changed"):
    """What its next run is started with has changed: mode, model, what is auto-approved."""

    spec: SessionSpec
    by: str


class SessionDeleted(Event, tag="session.deleted"):
    """It is forgotten, with all that was said in it. The journal keeps this of it, and no more."""

    by: str


# --- its runs ------------------------------------------------------------------------------------


class RunStarting(Event, tag="run.starting"):
    """A machine is asked to start a CLI."""

    run: str
    machine: str
    origin: Origin = Origin()
    mode: str | None = None
    """The permission mode that it is started in; None leaves it to the CLI and its settings."""
    skip_permissions: bool = False
    """It has leave to bypass permissions, in whatever mode it is started."""
    at_root: bool = False
    """Of a CLI that dialled the hub itself: whether it did so at `/`, as nobody in particular."""


class RunStarted(Event, tag="run.started"):
    """The CLI runs. Of one that dialled, more is known when its first turn begins: told again."""

    run: str
    pid: int | None = None
    version: str | None = None
    directory: str | None = None


class RunStopping(Event, tag="run.stopping"):
    """Somebody wants the CLI to end."""

    run: str
    by: str


class RunEnded(Event, tag="run.ended"):
    """The CLI has ended, or never began; `reason` is a sentence for a person."""

    run: str
    reason: str
    clean: bool = False
    exit_code: int | None = None
    signal: int | None = None
    stderr: tuple[str, ...] = ()
    """The last lines that it wrote to stderr."""
    fault: str = ""
    """What its machine had to do about it: `output_closed` or `no_exit`."""


class StartAfresh(Event, tag="run.afresh"):
    """The run is to end, and another begins a new conversation with the prompts that are queued."""

    run: str
    by: str


class LinkLost(Event, tag="run.link_lost"):
    """The machine cannot be reached; the CLI may well work on."""

    run: str
    reason: str


class LinkFound(Event, tag="run.link_found"):
    """The machine is there again. `lost` tells that lines of the CLI are gone for good."""

    run: str
    lost: bool = False


class StateChanged(Event, tag="run.state"):
    """The CLI does something else now; `detail` is a few words for a person."""

    state: SessionState
    detail: str = ""


class Switched(Event, tag="run.switched"):
    """Another mode, model, effort or amount of thinking holds now. None is no change."""

    mode: str | None = None
    model: str | None = None
    effort: str | None = None
    """An effort level; `auto` leaves it to the CLI."""
    thinking: str | None = None
    """`auto`, `off`, or the number of tokens that the model may think."""
    by: str = "cli"
    """A person, or `cli` for what the CLI or its agent did by itself."""


class CliSession(Event, tag="run.cli_session"):
    """The CLI's own id for the conversation, with which it is resumed."""

    cli_session: str


class Said(Event, tag="said"):
    """A line of the CLI, as it came. `number` counts the lines of its run, deltas too."""

    run: str
    number: int
    line: Raw


class SaidBroken(Event, tag="said.broken"):
    """A line of the CLI that is no JSON, as text with what is no UTF-8 replaced."""

    run: str
    number: int
    text: str
    error: str


IMPORTED = "import"
"""The `run` of what no run of ours has said."""


class Recalled(Event, tag="said.recalled"):
    """A message that nobody heard: read from the transcript that the CLI keeps on its own disk.

    `line` is in the form in which the CLI would have said it. With the run `IMPORTED` it was said
    before the session was ours: the echo of a prompt is then all that there is of the prompt.
    """

    run: str
    uuid: str
    line: Raw


class Sent(Event, tag="sent"):
    """A line for the CLI. It is journalled before it is written, and written exactly once."""

    run: str
    number: int
    line: Raw
    by: str = ""
    """Who had it sent, where the line switches the mode or the model."""


# --- prompts -------------------------------------------------------------------------------------


class PromptQueued(Event, tag="prompt.queued"):
    """Somebody wants something done. `prompt` is the id that whoever sent it chose."""

    prompt: str
    content: Raw
    """A text, or the content blocks of the Messages API."""
    by: str


class PromptChanged(Event, tag="prompt.changed"):
    """It says something else, and has not been sent yet."""

    prompt: str
    content: Raw
    by: str


class PromptCancelled(Event, tag="prompt.cancelled"):
    """It will not run."""

    prompt: str
    by: str
    reason: str = ""


class PromptSent(Event, tag="prompt.sent"):
    """It was given to the CLI, under a uuid of its own: a CLI takes each uuid only once."""

    prompt: str
    run: str
    uuid: str | None = None
    """None: the prompt's id is the uuid."""
    steered: bool = False
    """It was sent while a turn ran. `PromptTaken` tells when the CLI took it in."""


class PromptTaken(Event, tag="prompt.taken"):
    """A turn has taken it in."""

    prompt: str


class ModelTokens(Value):
    """What a turn used of one model."""

    model: str
    cost_usd: float = 0.0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class TurnEnded(Event, tag="turn.ended"):
    """A turn is over. `prompts` is empty for one that a background task began."""

    prompts: tuple[str, ...]
    failed: bool
    outcome: str
    cost_usd: float
    text: str = ""
    models: tuple[ModelTokens, ...] = ()
    duration_ms: int | None = None
    tool_calls: int = 0


class Metered(Event, tag="turn.metered"):
    """What the open turn has used so far, by what the CLI's messages say; its end supersedes it.

    The CLI tells costs with a turn's end only. Until then they are estimated, from the prices that
    its earlier totals come to.
    """

    run: str
    models: tuple[ModelTokens, ...]
    tool_calls: int = 0


# --- questions -----------------------------------------------------------------------------------


class AskKind(StrEnum):
    """What a person is asked."""

    TOOL = "tool"
    PLAN = "plan"
    QUESTIONS = "questions"
    ELICITATION = "elicitation"


class AskOpened(Event, tag="ask.opened"):
    """A person is asked. `request` is the CLI's request, whole, as it came."""

    ask: str
    run: str
    request_id: str
    ask_kind: AskKind
    tool: str
    title: str
    request: Raw
    tool_use_id: str | None = None
    agent: str | None = None
    """The subagent that asks, if one does."""
    plan: str | None = None
    """The text of a plan, whichever way the version supplies it."""
    reasons: tuple[str, ...] = ()
    """Why a person is asked."""
    rule: str | None = None
    """The rule of ours that asks, and where it stands."""
    source: str | None = None
    answered_by: tuple[tuple[str, ...], ...] = ()
    """Lists of names and roles (`role:owner`): whoever answers is on each of them."""
    wait: float | None = None
    """Seconds after which it is settled without a person, by `then`."""
    then: str = "deny"
    branch: str | None = None


class AskAnswered(Event, tag="ask.answered"):
    """It was answered, by whom, and how. The first answer is the only one."""

    ask: str
    by: str
    answer: Raw
    """The answer as it was submitted; what the CLI got is in `Sent`."""
    allowed: bool
    input: Raw = ABSENT
    """The input that runs, where a rule rewrote the edited input in the answer."""


class AskWithdrawn(Event, tag="ask.withdrawn"):
    """The answer is not wanted any more."""

    ask: str
    reason: str


class LeftToCli(Event, tag="call.left_to_cli"):
    """A hook showed a tool call, and no rule of ours decides it: the CLI allows, denies or asks.

    It has what the audit entry of the call needs and no line of the CLI tells.
    """

    tool_use_id: str
    branch: str | None = None
    """The branch that was checked out."""
    rewritten: bool = False
    """A rule rewrote the input."""


class Decided(Event, tag="decided"):
    """The audit entry of a tool call: who or what let it pass, or did not, and why."""

    tool: str
    title: str
    verdict: str
    """`allow`, `deny` or `ask`."""
    by: str
    """A person, `policy`, or `cli` for what the CLI decided by itself."""
    reasons: tuple[str, ...] = ()
    tool_use_id: str | None = None
    ask: str | None = None
    rule: str | None = None
    """The rule that decided or that had a person asked, and where it stands."""
    source: str | None = None
    branch: str | None = None
    """The branch that was checked out, where it is known: rules may be about it."""
    rewritten: bool = False
    """What ran is not what the agent asked for."""


# --- what holds now -----------------------------------------------------------------------------


class OffersChanged(Event, tag="offers.changed"):
    """Other commands, models or agents can be chosen. None is no change."""

    commands: tuple[OfferedCommand, ...] | None = None
    models: tuple[OfferedModel, ...] | None = None
    agents: tuple[OfferedAgent, ...] | None = None
    cut: dict[str, int] = field(default_factory=dict)
    """How many entries are left out, by the name of the list."""


class TodosChanged(Event, tag="todos.changed"):
    """The agent's to-do list, whole."""

    todos: tuple[Todo, ...]
    cut: int = 0
    """How many entries are left out."""


class TaskChanged(Event, tag="task.changed"):
    """A shell, subagent or workflow runs, or tells how far it is."""

    task: Task


class TaskEnded(Event, tag="task.ended"):
    """It runs no more."""

    task: str
    status: str = ""
    """`completed`, `failed`, `stopped` or `killed`; empty where the CLI does not tell."""


class ToolStarted(Event, tag="tool.started"):
    """The model has called a tool: it runs, or waits for an answer."""

    call: str
    tool: str
    title: str = ""
    agent: str | None = None
    """The call of the subagent that made this call."""


class ToolEnded(Event, tag="tool.ended"):
    """The tool call has its result."""

    call: str
    failed: bool = False


class McpChanged(Event, tag="mcp.changed"):
    """The session's MCP servers with their status, all of them."""

    servers: tuple[McpServer, ...]
    cut: int = 0
    """How many servers are left out."""


class ContextChanged(Event, tag="context.changed"):
    """The context window is more or less full. None is no change."""

    tokens: int | None = None
    window: int | None = None


class RateLimited(Event, tag="rate_limited"):
    """The account's limit, as the CLI tells it: `allowed`, `allowed_warning` or `rejected`."""

    status: str
    limit: str | None = None
    """Which of the account's limits it is."""
    resets_at: int | None = None
    """In ms since 1970."""
    used: float | None = None
    """How much of it is used, from 0 to 1."""


class BudgetReached(Event, tag="budget.reached"):
    """So much was spent that the turn was interrupted, or is not begun."""

    scope: str
    """`run`, `session`, `day` or `project`."""
    unit: str
    """`usd` or `tokens`."""
    limit: float
    spent: float


class BudgetFreed(Event, tag="budget.freed"):
    """There is room again: the limit was raised, or another day or run began."""

    scope: str
    unit: str


class Alarmed(Event, tag="alarm"):
    """Something is wrong with the run; what was done about it is in `action`."""

    alarm: str
    """Which of the watchdog's alarms."""
    text: str
    action: str = ""


class AlarmEnded(Event, tag="alarm.ended"):
    """It has gone on by itself after all."""

    alarm: str


class WorktreeSettled(Event, tag="worktree.settled"):
    """Its worktree was merged, kept or discarded; `text` says it to a person."""

    action: str
    """`merge`, `keep` or `discard`."""
    branch: str
    by: str
    text: str = ""
    commit: str | None = None
    saved: str | None = None
    """The ref under which discarded work can be found again."""


class Noted(Event, tag="noted"):
    """Something that people should know: a refused request, lost lines, a full disk."""

    level: str
    text: str


AnyEvent = (
    SessionCreated
    | SessionRenamed
    | SessionArchived
    | SpecChanged
    | SessionDeleted
    | RunStarting
    | RunStarted
    | RunStopping
    | RunEnded
    | StartAfresh
    | LinkLost
    | LinkFound
    | StateChanged
    | Switched
    | CliSession
    | Said
    | SaidBroken
    | Recalled
    | Sent
    | PromptQueued
    | PromptChanged
    | PromptCancelled
    | PromptSent
    | PromptTaken
    | Metered
    | TurnEnded
    | AskOpened
    | AskAnswered
    | AskWithdrawn
    | LeftToCli
    | Decided
    | OffersChanged
    | TodosChanged
    | TaskChanged
    | TaskEnded
    | ToolStarted
    | ToolEnded
    | McpChanged
    | ContextChanged
    | RateLimited
    | BudgetReached
    | BudgetFreed
    | Alarmed
    | AlarmEnded
    | WorktreeSettled
    | Noted
)
