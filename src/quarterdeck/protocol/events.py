"""The events of a session, as the journal stores them.

One union of frozen structs. An event is a fact and is never changed. State, open questions and
cost are folded from the events and can be folded again.

The lines of the CLI are events too (`Said`), byte for byte. Token deltas are not: they are
delivered live and superseded by the message that follows.

The module is long because the events are one union: a list of what can happen, in one place.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Raw, field

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.protocol.holds import (
    McpServer,
    OfferedAgent,
    OfferedCommand,
    OfferedModel,
    Task,
    Todo,
)
from quarterdeck.protocol.sandbox import SandboxPaths, SandboxState
from quarterdeck.protocol.sessions import Origin, SessionSpec, SessionState


class Event(Value, tag_field="kind"):
    """The base of all events. The journal adds its time and its number."""


# --- the session ---------------------------------------------------------------------------------


class SessionCreated(Event, tag="session.created"):
    """A session was created."""

    spec: SessionSpec
    by: str
    parent: str | None = None
    """The session that it was forked from."""
    lineage: tuple[str, ...] = ()
    """The sessions whose agents have started it, the first one first; empty if a person did."""
    person: str = ""
    """Who started the first of the lineage: rules about users mean this person."""


class SessionRenamed(Event, tag="session.renamed"):
    """The session has a new name."""

    name: str
    by: str


class SessionArchived(Event, tag="session.archived"):
    """The session was archived, or (`archived` false) restored."""

    archived: bool
    by: str


class SpecChanged(Event, tag="session.changed"):
    """The spec of the next run has changed: mode, model, auto-approved tools."""

    spec: SessionSpec
    by: str


class SessionDeleted(Event, tag="session.deleted"):
    """The session was deleted. The journal keeps only this event of it."""

    by: str


# --- its runs ------------------------------------------------------------------------------------


class RunStarting(Event, tag="run.starting"):
    """A machine is asked to start a CLI."""

    run: str
    machine: str
    origin: Origin = Origin()
    mode: str | None = None
    """The permission mode at the start; None leaves it to the CLI and its settings."""
    skip_permissions: bool = False
    """The CLI may bypass permissions, whatever its mode."""
    at_root: bool = False
    """The CLI connected to the hub by itself, at `/`, without a session."""
    own_options: bool = False
    """A program has started the CLI with options that a runner does not have."""
    written: tuple[str, ...] = ()
    """The files that earlier runs of the session have written."""


class RunStarted(Event, tag="run.started"):
    """The CLI runs. A CLI that connected by itself is reported again with its first turn."""

    run: str
    pid: int | None = None
    version: str | None = None
    directory: str | None = None


class SandboxStarted(Event, tag="sandbox.started"):
    """The CLI runs in this sandbox, or in none. Part of the audit log."""

    run: str
    state: SandboxState
    paths: SandboxPaths = SandboxPaths()


class SandboxConnection(Event, tag="sandbox.connection"):
    """The sandbox's proxy has let a connection pass, or refused it. Part of the audit log.

    `number` is its place among the lines of the run; `count` includes repetitions.
    """

    run: str
    number: int
    host: str
    port: int
    allowed: bool
    count: int = 1


class ProgramActed(Event, tag="program.acted"):
    """The program of a session has asked something of its CLI, or a hook of it has decided
    something. Part of the audit log.
    """

    run: str
    number: int
    """It is numbered like a line of the CLI."""
    by: str
    act: str
    """`request` or `hook`."""
    what: str
    """The subtype of the request (`set_permission_mode`), or the event of the hook."""
    detail: str = ""
    tool: str | None = None
    tool_use_id: str | None = None
    refused: bool = False
    """It was not passed on to the CLI."""


class SandboxRefused(Event, tag="sandbox.refused"):
    """The result of a call reads as if the sandbox had refused something. A hint, no proof."""

    call: str
    tool: str
    access: str
    """`write`, `read` or `connect`."""
    target: str
    """The path, or the host."""
    rule: str = ""
    """A rule that would allow it in the next run; empty if none would."""


class RunStopping(Event, tag="run.stopping"):
    """A person, or the hub, has asked the CLI to end."""

    run: str
    by: str


class RunEnded(Event, tag="run.ended"):
    """The CLI has ended, or never started; `coded` says why.

    `reason` is the machine's message, or the sentence of an older hub; else it is empty.
    """

    run: str
    reason: str
    coded: CodedText | None = None
    clean: bool = False
    exit_code: int | None = None
    signal: int | None = None
    stderr: tuple[str, ...] = ()
    """The last lines of its stderr."""
    fault: str = ""
    """What went wrong with the end itself: `output_closed`, `no_exit` or `runner_killed`."""
    cut_off: bool = False
    """Whether a turn was open."""
    written: tuple[str, ...] = ()
    """The files that the runs of the session have written, this one included: rules for commands
    do not trust them."""


class StartAfresh(Event, tag="run.afresh"):
    """The run will end; the next run starts a new conversation with the queued prompts."""

    run: str
    by: str


class LinkLost(Event, tag="run.link_lost"):
    """The machine cannot be reached, for the reason `coded`. The CLI may still be working.

    `reason` is the sentence of an older hub; else it is empty.
    """

    run: str
    reason: str
    coded: CodedText | None = None


class LinkFound(Event, tag="run.link_found"):
    """The machine is connected again. `lost`: lines of the CLI are lost permanently."""

    run: str
    lost: bool = False


class StateChanged(Event, tag="run.state"):
    """The CLI has another state; `coded` says more about it. `detail` is that of an older hub."""

    state: SessionState
    detail: str = ""
    coded: CodedText | None = None


class Switched(Event, tag="run.switched"):
    """Another mode, model, effort or amount of thinking holds now. None is no change."""

    mode: str | None = None
    model: str | None = None
    effort: str | None = None
    """An effort level; `auto` leaves it to the CLI."""
    thinking: str | None = None
    """`auto`, `off`, or the number of tokens that the model may think."""
    by: str = "cli"
    """A person, or `cli` if the CLI or its agent switched by itself."""


class CliSession(Event, tag="run.cli_session"):
    """The CLI's id of the conversation, used to resume it."""

    cli_session: str


class Said(Event, tag="said"):
    """A line of the CLI, unchanged. `number` counts the lines of its run, including deltas."""

    run: str
    number: int
    line: Raw


class SaidBroken(Event, tag="said.broken"):
    """A line of the CLI that is not JSON, as text. Invalid UTF-8 is replaced."""

    run: str
    number: int
    text: str
    error: str


IMPORTED = "import"
"""The `run` of messages from before the session was in the hub."""


class Recalled(Event, tag="said.recalled"):
    """A message that the hub did not receive, read from the transcript on the CLI's disk.

    `line` has the form of a line of the CLI. With the run `IMPORTED` the message is older than the
    session; a prompt is then known by its echo only.
    """

    run: str
    uuid: str
    line: Raw


class Sent(Event, tag="sent"):
    """A line to the CLI. It is journalled before it is written, and written exactly once."""

    run: str
    number: int
    line: Raw
    by: str = ""
    """Who sent it, for lines that switch mode, model, effort or thinking."""


# --- prompts -------------------------------------------------------------------------------------


class PromptQueued(Event, tag="prompt.queued"):
    """A prompt was queued. The sender chose the id `prompt`."""

    prompt: str
    content: Raw
    """A text, or the content blocks of the Messages API."""
    by: str


class PromptChanged(Event, tag="prompt.changed"):
    """A queued prompt was edited."""

    prompt: str
    content: Raw
    by: str


class PromptCancelled(Event, tag="prompt.cancelled"):
    """A queued prompt was cancelled."""

    prompt: str
    by: str
    reason: str = ""


class PromptSent(Event, tag="prompt.sent"):
    """The prompt was sent to the CLI, with a uuid; a CLI accepts each uuid once."""

    prompt: str
    run: str
    uuid: str | None = None
    """None: the prompt's id is the uuid."""
    steered: bool = False
    """It was sent into a running turn. `PromptTaken` follows when the CLI took it in."""


class PromptTaken(Event, tag="prompt.taken"):
    """A turn has taken the prompt in."""

    prompt: str


class PeerPrompted(Event, tag="prompt.peer"):
    """Another Claude session has sent a prompt to the CLI, without the hub.

    The CLI's line with the whole text is in `Said`.
    """

    run: str
    message: str
    """The CLI's id of the message."""
    sender: str = ""
    """The address that the sender gave, as `uds:` and the path of its socket."""
    name: str = ""
    """The name that the sender gave."""
    pid: int | None = None
    """The process that sent it, where the CLI verified that."""
    text: str = ""
    """The beginning of the text, in one line."""
    refused: bool = True
    """The session refuses such prompts: an alarm follows."""


class ModelTokens(Value):
    """The usage of one model in a turn."""

    model: str
    cost_usd: float = 0.0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class TurnEnded(Event, tag="turn.ended"):
    """A turn has ended. `prompts` is empty if a background task or another session started it."""

    prompts: tuple[str, ...]
    failed: bool
    outcome: str
    cost_usd: float
    text: str = ""
    models: tuple[ModelTokens, ...] = ()
    duration_ms: int | None = None
    tool_calls: int = 0
    problem: str = ""
    """Why it failed, as a code: `interrupted` if a person asked for that, else why the model did
    not answer, in the CLI's codes, such as `authentication_failed`. Empty if it is unknown."""
    structured: Raw = ABSENT
    """The object that the turn ended with, if the session has a `json_schema`."""


class Metered(Event, tag="turn.metered"):
    """The usage of the open turn so far, from the CLI's messages. `TurnEnded` supersedes it.

    The CLI reports costs only at the end of a turn. Until then they are estimated with the prices
    that follow from its earlier totals.
    """

    run: str
    models: tuple[ModelTokens, ...]
    tool_calls: int = 0


# --- questions -----------------------------------------------------------------------------------


class AskKind(StrEnum):
    """The kind of a question to a person."""

    TOOL = "tool"
    PLAN = "plan"
    QUESTIONS = "questions"
    ELICITATION = "elicitation"


class AskOpened(Event, tag="ask.opened"):
    """A person is asked. `request` is the CLI's request, unchanged."""

    ask: str
    run: str
    request_id: str
    ask_kind: AskKind
    tool: str
    title: str
    request: Raw
    tool_use_id: str | None = None
    agent: str | None = None
    """The subagent that asks, if any."""
    plan: str | None = None
    """The text of a plan."""
    reasons: tuple[str, ...] = ()
    """The reasons of an older hub why a person is asked."""
    coded: tuple[CodedText, ...] = ()
    """The reasons why a person is asked."""
    rule: str | None = None
    """The policy rule that asks; `source` is its file and line."""
    source: str | None = None
    answered_by: tuple[tuple[str, ...], ...] = ()
    """Lists of names and roles (`role:owner`). The person who answers must match each list."""
    wait: float | None = None
    """Seconds until it is settled without a person, by `then`."""
    then: str = "deny"
    branch: str | None = None
    narrowest: tuple[str, ...] = ()
    """The rules that allow this call and as little else as possible, in Claude Code's syntax;
    empty if no rule can name it."""
    lasting: bool = True
    """False: a rule asks about such calls, whatever is granted."""


class AskAnswered(Event, tag="ask.answered"):
    """The question was answered. The first answer counts."""

    ask: str
    by: str
    answer: Raw
    """The answer as submitted. The line to the CLI is in `Sent`."""
    allowed: bool
    input: Raw = ABSENT
    """The input that runs, where a rule rewrote the edited input in the answer."""


class AskWithdrawn(Event, tag="ask.withdrawn"):
    """The question was withdrawn, for the reason `coded`; `reason` is that of an older hub."""

    ask: str
    reason: str
    coded: CodedText | None = None


class LeftToCli(Event, tag="call.left_to_cli"):
    """A hook showed a tool call, and no rule of ours decides it: the CLI allows, denies or asks.

    It keeps what the audit entry of the call needs and what no line of the CLI has.
    """

    tool_use_id: str
    branch: str | None = None
    """The branch that was checked out."""
    rewritten: bool = False
    """A rule rewrote the input."""


class Decided(Event, tag="decided"):
    """The audit entry of a tool call: who or what allowed or denied it, and why."""

    tool: str
    title: str
    verdict: str
    """`allow`, `deny` or `ask`."""
    by: str
    """A person, `policy`, or `cli` if the CLI decided by itself."""
    reasons: tuple[str, ...] = ()
    """The reasons of an older hub."""
    coded: tuple[CodedText, ...] = ()
    tool_use_id: str | None = None
    ask: str | None = None
    rule: str | None = None
    """The rule that decided, or that required a person; `source` is its file and line."""
    source: str | None = None
    branch: str | None = None
    """The branch that was checked out, if known. Rules may depend on it."""
    rewritten: bool = False
    """The input that ran is not the input that the agent asked for."""
    caller: str | None = None
    """Who made the call, if it was not an agent through its CLI: a person or an agent, at `/mcp`.
    """


# --- what holds now -----------------------------------------------------------------------------


class OffersChanged(Event, tag="offers.changed"):
    """The commands, models or agents to choose from have changed. None is no change."""

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
    """A shell, subagent or workflow has started, or reports its progress."""

    task: Task


class TaskEnded(Event, tag="task.ended"):
    """The task has ended."""

    task: str
    status: str = ""
    """`completed`, `failed`, `stopped` or `killed`; empty if the CLI does not report it."""


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
    """The use of the context window, or its size, has changed. None is no change."""

    tokens: int | None = None
    window: int | None = None


class RateLimited(Event, tag="rate_limited"):
    """A limit of the account, as the CLI reports it."""

    status: str
    """`allowed`, `allowed_warning` or `rejected`."""
    limit: str | None = None
    """The name of the limit."""
    resets_at: int | None = None
    """In ms since 1970."""
    used: float | None = None
    """The used share, from 0 to 1."""


class BudgetReached(Event, tag="budget.reached"):
    """A budget is reached: the turn was interrupted, or does not start."""

    scope: str
    """`run`, `session`, `day`, `project`, or `family`: a session whose agent started this one."""
    unit: str
    """`usd` or `tokens`."""
    limit: float
    spent: float


class BudgetFreed(Event, tag="budget.freed"):
    """The budget has room again: it was raised, or a new day or run began."""

    scope: str
    unit: str


class Alarmed(Event, tag="alarm"):
    """Something is wrong with the run: `coded` says what, and `act` what the hub did about it.

    `text` and `action` are the sentences of an older hub; else they are empty.
    """

    alarm: str
    """The code of the alarm."""
    text: str
    action: str = ""
    coded: CodedText | None = None
    act: str = ""
    """One of `AlarmAct`; empty: nothing."""


class AlarmEnded(Event, tag="alarm.ended"):
    """The alarm has ended: the run continued by itself."""

    alarm: str


class WorktreeSettled(Event, tag="worktree.settled"):
    """The worktree was merged, kept or discarded. `text` is that of an older runner or hub."""

    action: str
    """`merge`, `keep` or `discard`."""
    branch: str
    by: str
    text: str = ""
    coded: CodedText | None = None
    commit: str | None = None
    saved: str | None = None
    """The git ref that keeps discarded work."""


class FolderChanged(Event, tag="folder.changed"):
    """A person has changed the session's folder or published its work.

    `text` is that of an older runner or hub.
    """

    action: str
    """`revert`, `stage`, `unstage`, `commit`, `push` or `pull_request`."""
    by: str
    text: str = ""
    coded: CodedText | None = None
    paths: tuple[str, ...] = ()
    """The files, of which only the first 200 are named."""
    commit: str | None = None
    saved: str | None = None
    """The git ref that keeps what was undone."""
    url: str | None = None
    """Where it was pushed to, or the pull request."""


class SessionRewound(Event, tag="session.rewound"):
    """A person has gone back to before a prompt: with the files, the conversation, or both."""

    prompt: str
    by: str
    files: bool = False
    conversation: bool = False
    changed: tuple[str, ...] = ()
    """The files that were put back, of which only the first 200 are named."""


class Noted(Event, tag="noted"):
    """A note for people: a refused request, lost lines, a full disk."""

    level: str
    """`access`: it is in the audit log."""
    text: str
    """The sentence of an older hub; else empty."""
    coded: CodedText | None = None
    by: str = ""
    """The person who did it, if one did."""
    about: str = ""
    """What a person changed: `policy`, `grant`, `token`, `login`, `link`, `schedule` or
    `template`."""


AnyEvent = (
    SessionCreated
    | SessionRenamed
    | SessionArchived
    | SpecChanged
    | SessionDeleted
    | RunStarting
    | RunStarted
    | SandboxStarted
    | SandboxConnection
    | ProgramActed
    | SandboxRefused
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
    | PeerPrompted
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
    | FolderChanged
    | SessionRewound
    | Noted
)
