"""What a session is made of, in our words.

A *session* is a conversation that people see: it has a name, a history, and at most one CLI process
at a time. A *run* is one such process. A session outlives its runs: it is resumed with another.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value

AUTO = "auto"
"""The effort, or the amount of thinking, that the CLI chooses by itself."""
OFF = "off"


def thinking_code(tokens: int | None) -> str:
    """How much the model may think: `auto`, `off`, or the number of tokens."""
    if tokens is None:
        return AUTO
    return str(tokens) if tokens else OFF


class SessionState(StrEnum):
    """What a session is doing, as people read it."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting for you"
    COMPACTING = "compacting"
    RETRYING = "retrying"
    LIMITED = "rate limited"
    DISCONNECTED = "disconnected"
    ENDED = "ended"


class Budget(Value, forbid_unknown_fields=True):
    """How much may be spent, in US dollars and in tokens. What is left out has no limit."""

    run_usd: float | None = None
    run_tokens: int | None = None
    session_usd: float | None = None
    session_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that nothing could keep."""
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise UsageError(f"budget: {name}: a number above 0 is wanted")


class SessionSpec(Value, forbid_unknown_fields=True):
    """How a session's CLI is started. What is left out is left to the CLI and its settings."""

    directory: str = ""
    """Left out: the project's."""
    machine: str | None = None
    """A machine by name; None is the one that the hub runs on."""
    name: str | None = None
    project: str | None = None
    """A project of the configuration: its defaults hold for what is left out here."""
    worktree: str | None = None
    """Work in a git worktree of the directory's repository, on a branch of this name."""
    claude: str | None = None
    model: str | None = None
    mode: str | None = None
    effort: str | None = None
    max_thinking_tokens: int | None = None
    """How much the model may think; 0 turns thinking off. Newest models take their effort only."""
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    mcp_servers: dict[str, Raw] = field(default_factory=dict)
    add_dirs: tuple[str, ...] = ()
    settings: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    """The CLI's own limit for one run; `budget` is ours."""
    budget: Budget | None = None
    policy: str | None = None
    """A policy by name, on top of the one that holds for all sessions."""
    env: dict[str, str] = field(default_factory=dict)
    api_billing: bool = False
    restart: bool = False
    """Resume by itself after a crash of the CLI; a few times, if it does not stay up."""
    skip_permissions: bool = False
    """Nothing is asked that no rule asks or denies. A person must have wanted it: it is never a
    default. Without a `mode` the CLI starts with its permissions bypassed."""
    auto_approve: tuple[str, ...] = ()
    """Tools by name that are allowed without a question."""
    ask_timeout: float | None = None
    """Seconds after which a question that nobody answered is denied; None waits for ever."""

    plan_cooldown: float | None = None
    """Seconds for which a plan that was sent back for revision may not come again: once, twice …
    up to four times as long with each revision. Such a plan is sent back without a question."""

    @property
    def thinking(self) -> str | None:
        """How much the model may think, as a code; None where that is left to the CLI."""
        tokens = self.max_thinking_tokens
        return None if tokens is None else thinking_code(tokens)

    def __post_init__(self) -> None:
        """Refuse what cannot be right before anything is started for it."""
        if not self.directory.startswith("/") and (self.directory or self.project is None):
            raise UsageError("directory: an absolute path is wanted")
        if self.ask_timeout is not None and self.ask_timeout <= 0:
            raise UsageError("ask_timeout: a number above 0 is wanted")
        if self.max_thinking_tokens is not None and self.max_thinking_tokens < 0:
            raise UsageError("max_thinking_tokens: a number from 0 is wanted")
        if self.plan_cooldown is not None and self.plan_cooldown <= 0:
            raise UsageError("plan_cooldown: a number above 0 is wanted")


class Origin(Value):
    """Where a run takes its conversation from. All empty: it begins a new one.

    `cli_session` is the CLI's own session id; `fork` goes on in a copy of it, and `at` in a copy up
    to a message.
    """

    cli_session: str | None = None
    fork: bool = False
    at: str | None = None
