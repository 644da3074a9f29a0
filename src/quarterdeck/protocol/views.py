"""Views: what clients are shown of sessions, prompts, questions and machines.

A view is folded by the hub and read by everybody else. These structs have no secrets in them: the
front masks a spec before it makes a `SessionShape`. It does not know how anything is folded.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import AnyEvent, AskOpened, BudgetReached, RateLimited
from quarterdeck.protocol.holds import ContextUse, McpServer, Offers, RunningTool, Task, Todo
from quarterdeck.protocol.sandbox import SandboxState
from quarterdeck.protocol.sessions import SessionSpec, SessionState


class PromptView(Value):
    """A prompt whose turn has not begun."""

    prompt: str
    content: Raw
    by: str
    at: int
    run: str | None = None
    """The run that it was sent to. None: it is queued."""


class AskView(Value):
    """An open question, with everything that a client displays."""

    session: str
    seq: int
    at: int
    opened: AskOpened
    ended: bool = False
    """Its agent has ended, and nobody has answered: an answer resumes the session."""


class MachineView(Value):
    """A machine that runs agents, or did."""

    name: str
    connected: bool
    runner: str | None = None
    version: str | None = None
    pid: int | None = None
    runs: int = 0
    memory_available: int | None = None
    load: float | None = None
    since: int | None = None
    sandbox: bool = False
    """Its runner can be asked for a sandbox."""
    clock_ahead_ms: int | None = None
    """How far its clock is ahead of the hub's, measured over the network."""


class Deltas(Value):
    """Text of a message that is being generated: sent live, and not stored."""

    session: str
    message: str
    text: str
    block: int = 0
    thinking: bool = False


class AlarmShape(Value, omit_defaults=False):
    """A problem with a run; `act` is what the hub did about it.

    `text` and `action` are the same in words.
    """

    alarm: str
    text: str
    action: str
    at: int
    coded: CodedText | None
    act: str
    """One of the codes on the page of alarms; empty: nothing was done."""


class HoldsShape(Value, omit_defaults=False):
    """What holds in a session now. Tools, tasks and MCP servers end with the run."""

    todos: tuple[Todo, ...]
    tasks: tuple[Task, ...]
    """Shells, subagents and workflows that run now."""
    tools: tuple[RunningTool, ...]
    """Tool calls without a result yet, oldest first; the current tool is the last one."""
    mcp: tuple[McpServer, ...]
    context: ContextUse
    limits: tuple[RateLimited, ...]
    """The account's limits, each as the CLI reported it last."""
    cut: dict[str, int]
    """How many entries are left out of a list that was too long, by the list's name."""


class LastTurn(Value, omit_defaults=False):
    """How the last turn of a session ended."""

    at: int
    failed: bool
    outcome: str
    problem: str = ""
    """As in the event `turn.ended`."""


class SessionShape(Value, omit_defaults=False):
    """A session."""

    session: str
    name: str
    state: SessionState
    detail: str
    """Details of the state, in words: why the session ended, what is retried."""
    coded: CodedText | None
    """The same as a code with its parameters. Null if there are none, or if only `detail` has
    them: the message of a machine, and the sentence of an older hub."""
    since: int
    """When the state changed last, in ms since 1970."""
    last_turn: LastTurn | None
    """The last turn that has ended; null before the first."""
    spec: SessionSpec
    """How its CLI is started. The values of `env` and of MCP servers' secrets are masked."""
    by: str
    parent: str | None
    lineage: tuple[str, ...]
    """The sessions whose agents have started it, the first one first; empty if a person did."""
    created: int
    updated: int
    archived: bool
    head: int
    """The number of its last event."""
    news: int
    """The number of the last event that tells a person something: events after it are of the kind
    that every restart of the hub brings."""
    run: str | None
    machine: str | None
    pid: int | None
    version: str | None
    directory: str | None
    cli_session: str | None
    mode: str | None
    """The current or last permission mode; null if only the CLI's settings have it."""
    model: str | None
    """The current or last model; the CLI may use another name than the one that was requested."""
    effort: str | None
    """The current or last effort level; `auto` leaves it to the CLI."""
    thinking: str | None
    """`auto`, `off`, or the number of tokens that the model may think; null if nobody set it."""
    sandbox: SandboxState
    """The sandbox of the current or last run."""
    turns: int
    peer_prompts: int
    """Prompts that other Claude sessions have sent to its CLIs, without the hub."""
    cost_usd: float
    estimated_usd: float
    """The part of the cost that is estimated, until the CLI reports a total."""
    tokens: int
    run_usd: float
    """The cost of this run, or of the last one."""
    run_tokens: int
    budgets: tuple[BudgetReached, ...]
    """The limits that are reached. No prompt is sent until they are raised or reset."""
    alarms: tuple[AlarmShape, ...]
    """The problems of the run, or of the last one."""
    queued: int
    asks: int
    holds: HoldsShape
    offers: Offers | None
    crashed: bool = False
    """Its last run ended by itself, with an error."""
    """The commands, models and agents that can be chosen. Null in lists and in the stream: `GET`
    the session for them. The event `offers.changed` tells that they have changed."""


class Checkpoint(Value, omit_defaults=False):
    """A prompt that was sent, as a point to go back to."""

    prompt: str
    uuid: str
    """By which the CLI knows it."""
    at: int
    seq: int
    """The number of the event that it was sent with."""
    by: str
    text: str
    """Its beginning."""
    before: str | None = None
    """The last message of the model before it: a fork up to there has not seen the prompt."""
    conversation: str | None = None
    """The CLI's id of the conversation that it belongs to."""
    steered: bool = False
    gone: bool = False
    """The conversation has gone back to before it."""


class CheckpointList(Value, omit_defaults=False):
    """The checkpoints of a session, oldest first."""

    checkpoints: tuple[Checkpoint, ...]
    conversation: str | None
    """The CLI's id of the current conversation."""
    in_place: bool
    """The session's version of the CLI can go back with its conversation; others can be forked."""


class Rewound(Value, omit_defaults=False):
    """What going back changes, or (`dry_run`) would change: the answer to `session.rewind`."""

    dry_run: bool
    files: bool = False
    """The files can go back, or did."""
    files_problem: str = ""
    """Why they cannot."""
    changed: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0
    conversation: bool = False
    """The conversation can go back, or did."""
    conversation_problem: str = ""


class EventShape(Value):
    """A stored event: `seq` counts within its session, `position` over all sessions."""

    session: str
    seq: int
    position: int
    at: int
    """In ms since 1970."""
    event: AnyEvent


class Piece(Value):
    """A line of a CLI that is not journalled: a piece of a message that is being generated."""

    session: str
    run: str
    number: int
    """Counts the lines of its run, as `Said` does."""
    after: int
    """The number of the last journalled line before it."""
    line: bytes


def merge_deltas(pieces: Iterable[Deltas]) -> list[Deltas]:
    """Neighbours of one block as one piece."""
    made: list[Deltas] = []
    texts: list[str] = []
    last: tuple[str, str, int, bool] | None = None
    for piece in pieces:
        block = (piece.session, piece.message, piece.block, piece.thinking)
        if block != last:
            if len(texts) > 1:
                made[-1] = replace(made[-1], text="".join(texts))
            made.append(piece)
            texts, last = [], block
        texts.append(piece.text)
    if len(texts) > 1:
        made[-1] = replace(made[-1], text="".join(texts))
    return made
