"""A session, folded from its events. `journal.views` folds it.

`views.SessionShape` is what clients get of it.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import field

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Forbidden
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.accounts import Account
from quarterdeck.protocol.agent_messages import AgentMessages
from quarterdeck.protocol.coded_texts import coded_text, end_of
from quarterdeck.protocol.events import (
    Decided,
    Event,
    LeftToCli,
    Noted,
    ProgramActed,
    Recalled,
    RunEnded,
    Said,
    SaidBroken,
    SandboxConnection,
    SandboxRefused,
    Sent,
)
from quarterdeck.protocol.holds import Holds
from quarterdeck.protocol.sandbox import SandboxState
from quarterdeck.protocol.sessions import SessionSpec, SessionState, is_agent
from quarterdeck.protocol.views import AskView as AskView
from quarterdeck.protocol.views import LastTurn
from quarterdeck.protocol.views import PromptView as PromptView

_NOT_STARTED = CodedText(code=TextCode.NOT_STARTED_YET)


class PromptStage(StrEnum):
    """The stage of a prompt."""

    QUEUED = "queued"
    SENT = "sent"
    TAKEN = "taken"
    DONE = "done"
    CANCELLED = "cancelled"


class SessionView(Value):
    """A session, folded from its events."""

    session: str
    head: int = 0
    """The number of the last folded event."""
    spec: SessionSpec = SessionSpec(directory="/")
    name: str = ""
    by: str = ""
    parent: str | None = None
    lineage: tuple[str, ...] = ()
    """The sessions whose agents have started it, the first one first."""
    person: str = ""
    """Who started the first of the lineage; empty without one."""
    created: int = 0
    updated: int = 0
    archived: bool = False
    deleted: bool = False

    run: str | None = None
    """The current run, if any."""
    run_began: int = 0
    """The number of the event with which the current or last run started."""
    machine: str | None = None
    """The machine of the current or last run."""
    pid: int | None = None
    version: str | None = None
    directory: str | None = None
    said: int = 0
    """The highest number of a line from the run."""
    sent: int = 0
    """The highest number of a line to the run."""
    link_lost: str | None = None
    """Not None: the link is lost. The reason is `link_coded`, or this sentence of an older hub."""
    link_coded: CodedText | None = None
    ended: RunEnded | None = None
    """How the last run ended."""
    ended_runs: tuple[str, ...] = ()
    stopped_by: str | None = None
    """Who ended the current or last run; None if it was not stopped. A person counts more than an
    agent."""
    cli_session: str | None = None
    afresh: bool = False
    """The run will end; the next run starts a new conversation."""
    mode: str | None = None
    """The permission mode in force in the run, or last in force; None if unknown."""
    model: str | None = None
    """The model in force, or last in force."""
    effort: str | None = None
    """The effort level; None if only the spec tells it."""
    thinking: str | None = None
    """`auto`, `off` or a number of tokens; None if only the spec tells it."""
    sandbox: SandboxState | None = None
    """The sandbox of the current or last run; None if it is not recorded."""
    own_options: bool = False
    """A program has started the current or last run with options that a runner does not have."""
    holds: Holds = Holds()
    """Offers, to-dos, tasks, tools, MCP servers, context."""
    cli_state: SessionState = SessionState.ENDED
    """The state of the last `StateChanged`; `state` also considers questions and the link."""
    cli_detail: str = ""
    """What an older hub says about it; else `cli_coded` does."""
    cli_coded: CodedText | None = None
    since: int = 0
    """When `state` changed last, in ms since 1970."""
    last_turn: LastTurn | None = None
    """The last turn that has ended."""
    quiet: tuple[int, int] = (0, 0)
    """The first and the last number of the last events in a row that tell a person nothing new."""

    unsent: tuple[PromptView, ...] = ()
    """Prompts that no turn has taken yet, in order: queued, or sent to a run."""
    prompts: dict[str, PromptStage] = field(default_factory=dict)
    """The stage of each unfinished prompt, and of the newest finished ones."""
    agent_messages: tuple[AgentMessages, ...] = ()
    """The prompts of the last hour that agents have sent."""
    prompts_forgotten: int = 0
    """How many finished prompts were dropped from `prompts`. See `Journal.has_prompt`."""
    asks: dict[str, AskView] = field(default_factory=dict)
    """The open questions, oldest first."""
    settled: dict[str, str | None] = field(default_factory=dict)
    """The newest settled questions with their run. Those of ended runs are dropped."""
    turns: int = 0
    peer_prompts: int = 0
    """Prompts that other Claude sessions have sent to its CLIs, without the hub."""
    cost_usd: float = 0.0
    """The cost in the account."""
    account: Account = Account()

    @property
    def user(self) -> str:
        """The person that rules about users mean: the one who started it, or the first above it."""
        return self.person or self.by

    @property
    def state(self) -> SessionState:
        """The state of the session."""
        if self.run is None:
            return SessionState.ENDED
        if self.link_lost is not None:
            return SessionState.DISCONNECTED
        if self.asks:
            return SessionState.WAITING
        return self.cli_state

    @property
    def crashed(self) -> bool:
        """Whether its last run ended by itself, with an error: nobody stopped or moved it."""
        if self.run is not None or self.ended is None or self.account.stopping:
            return False
        end, began = self.ended, self.account.up_since > 0
        moved = end.coded is not None and end.coded.code == TextCode.MOVED_AWAY
        return began and not moved and not end.clean and end.exit_code != 0

    @property
    def coded(self) -> CodedText | None:
        """More about the state: why it ended, what is retried. None: see `detail`."""
        if self.run is None:
            return _NOT_STARTED if self.ended is None else end_of(self.ended)
        return self.cli_coded if self.link_lost is None else self.link_coded

    @property
    def detail(self) -> str:
        """The same in words, for people."""
        if (coded := self.coded) is not None:
            return coded_text(coded)
        if self.run is None:
            return "" if self.ended is None else self.ended.reason
        return self.cli_detail if self.link_lost is None else self.link_lost

    @property
    def news(self) -> int:
        """The number of the last event that tells a person something."""
        first, last = self.quiet
        return first - 1 if last == self.head and first else self.head

    @property
    def queued(self) -> tuple[PromptView, ...]:
        """The queued prompts, in order."""
        return tuple(prompt for prompt in self.unsent if prompt.run is None)


_ONLY_COUNTS = frozenset(
    {
        Said,
        SaidBroken,
        Recalled,
        Sent,
        LeftToCli,
        Decided,
        SandboxConnection,
        ProgramActed,
        SandboxRefused,
        Noted,
    }
)


def only_counts(event: Event) -> bool:
    """Whether an event changes only `head`, `updated`, `said` and `sent`.

    This is true of nearly all events. An engine need not write the rest of the view for them.
    """
    return type(event) in _ONLY_COUNTS


def check_revive(target: SessionView) -> None:
    """Raise `Forbidden` for an agent's prompt to a session that a person has stopped or archived.

    A person resumes it. While its CLI still ends, the prompt would be queued for the next one.
    """
    if target.archived:
        raise Forbidden("a person has archived this session: only a person may continue it")
    if target.stopped_by is not None and not is_agent(target.stopped_by):
        raise Forbidden("a person has stopped this session: only a person may continue it")
