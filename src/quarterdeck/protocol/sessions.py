"""Sessions, runs and how they are started.

A *session* is a conversation that people see: it has a name, a history, and at most one CLI process
at a time. A *run* is one such process. A session outlives its runs: it is resumed with a new run.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol import launch_members as check
from quarterdeck.protocol.launch_fields import LaunchMembers
from quarterdeck.protocol.sandbox import SandboxMode, SandboxOptions

LOCAL = "local"
"""The name of the machine that the hub itself is on."""


INBOUND = "dialled"
"""The machine of a run whose CLI connected to the hub itself: which machine that is, is unknown.
Journals have this value, so it keeps its spelling."""


PROGRAM = "program"
"""The machine of a run that a program has started by itself, with `quarterdeck-claude`."""


UNMANAGED = frozenset({INBOUND, PROGRAM})
"""Machines on which the hub can start nothing."""


AUTO = "auto"
"""The effort, or the amount of thinking, that the CLI chooses by itself."""
OFF = "off"
LONGEST_FAMILY = 128


_AGENT = "agent:"


def agent_name(session: str) -> str:
    """The name under which the agent of a session acts on others, as the `by` of a command."""
    return _AGENT + session


def is_agent(by: str) -> bool:
    """Whether an agent did it, and no person."""
    return by.startswith(_AGENT)


def thinking_code(tokens: int | None) -> str:
    """How much the model may think: `auto`, `off`, or the number of tokens."""
    if tokens is None:
        return AUTO
    return str(tokens) if tokens else OFF


class SessionState(StrEnum):
    """The state of a session, as a code. Fronts show words for it."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"
    """A question is open."""
    COMPACTING = "compacting"
    RETRYING = "retrying"
    LIMITED = "rate_limited"
    DISCONNECTED = "disconnected"
    ENDED = "ended"

    @classmethod
    def _missing_(cls, value: object) -> SessionState | None:
        """Read the values of older journals, which had words in place of codes."""
        return {"waiting for you": cls.WAITING, "rate limited": cls.LIMITED}.get(str(value))


class Budget(Value, forbid_unknown_fields=True):
    """Limits on spending, in US dollars and in tokens. A missing member is no limit."""

    run_usd: float | None = None
    run_tokens: int | None = None
    session_usd: float | None = None
    session_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that cannot be met."""
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise UsageError(f"budget: {name}: must be a number above 0")


RestartRule = Literal["faults", "crashes", "never"]


def restart_rule(given: RestartRule | bool) -> RestartRule:
    """A rule for restarts, from its word or from a boolean."""
    if isinstance(given, bool):
        return "crashes" if given else "never"
    return given


class SessionSpec(LaunchMembers, forbid_unknown_fields=True):
    """How a session's CLI is started. Missing members use the CLI's settings."""

    directory: str = ""
    """Empty: the folder of the project."""
    machine: str | None = None
    """The name of a machine; None is the machine of the hub."""
    project: str | None = None
    """A project of the configuration; its defaults replace missing members."""
    family: str | None = None
    """The loop that the session belongs to. Clients show the sessions of a family as one."""
    claude: str | None = None
    mcp_servers: dict[str, Raw] = field(default_factory=dict)
    agent_progress_summaries: bool = False
    skills: tuple[str, ...] | None = None
    """The only skills that the agent has."""
    extra_args: dict[str, str | None] = field(default_factory=dict)
    """Flags of the CLI that have no member here, without dashes; null for one without a value."""
    budget: Budget | None = None
    policy: str | None = None
    """The name of a policy that is added to the policy of all sessions."""
    sandbox: SandboxMode | None = None
    """What the kernel refuses to the CLI and all that it starts. None: the configured mode."""
    sandbox_options: SandboxOptions | None = None
    env: dict[str, str] = field(default_factory=dict)
    api_billing: bool = False
    restart: RestartRule | bool = "faults"
    """When to resume automatically, a limited number of times in a row. `faults`: when the runner
    or its machine died and there is work left; `crashes`: after a crash of the CLI, too. `true`
    means `crashes`, `false` means `never`."""
    cross_session: bool = False
    """Other Claude sessions of the same user on the machine may send prompts to this one, without
    the hub. Never a default: a person must set it. False: the CLI refuses them, and a turn that one
    of them starts all the same raises an alarm."""
    agents: bool = False
    """The agent gets tools to start other agents in the hub, and to direct those that it has
    started. They inherit what it may do, and spend its budget."""
    auto_approve: tuple[str, ...] = ()
    """Names of tools that are allowed without a question."""
    ask_timeout: float | None = None
    """Seconds after which an unanswered question is denied; None waits without limit."""

    plan_cooldown: float | None = None
    """Seconds after a revision in which a new plan is sent back without a question. The time grows
    with each revision, up to four times."""

    @property
    def restart_rule(self) -> RestartRule:
        """When to resume automatically."""
        return restart_rule(self.restart)

    @property
    def thinking(self) -> str | None:
        """How much the model may think, as a code; None leaves it to the CLI."""
        tokens = self.max_thinking_tokens
        if tokens is None:
            return {None: None, "adaptive": AUTO, "disabled": OFF}[self.thinking_mode]
        return thinking_code(tokens)

    @property
    def launch_paths(self) -> tuple[str, ...]:
        """What the CLI reads at its start, and in part runs. Its agent may not change it: that
        would be more than it is allowed, from its next start on.
        """
        values = (getattr(self, member) for member in check.FIXED)
        paths = (
            path for value in values for path in (value if isinstance(value, tuple) else (value,))
        )
        # Settings may also be JSON.
        return tuple(path for path in paths if path is not None and path.startswith("/"))

    def __post_init__(self) -> None:
        """Refuse invalid values before anything is started."""
        if not self.directory.startswith("/") and (self.directory or self.project is None):
            raise UsageError("directory: must be an absolute path")
        if self.family is not None and not 0 < len(self.family) <= LONGEST_FAMILY:
            raise UsageError(f"family: must have 1 to {LONGEST_FAMILY} characters")
        if self.ask_timeout is not None and self.ask_timeout <= 0:
            raise UsageError("ask_timeout: must be a number above 0")
        if self.plan_cooldown is not None and self.plan_cooldown <= 0:
            raise UsageError("plan_cooldown: must be a number above 0")
        self._check_launch()

    def _check_launch(self) -> None:
        """Refuse what could not be a flag, or would be one that the hub must know."""
        for both in ("system_prompt", "append_system_prompt"):
            if getattr(self, both) is not None and getattr(self, f"{both}_file") is not None:
                raise UsageError(f"{both} and {both}_file cannot be combined")
        for member, check_value in check.CHECKS:
            check_value(member, getattr(self, member))
        check.check_list("skills", self.skills)
        check.check_schema(self.json_schema)
        check.check_subagents(self.subagents)
        check.check_extra(self.extra_args)


class Origin(Value):
    """Where a run takes its conversation from. Empty: it starts a new conversation.

    `cli_session` is the CLI's session id; `fork` continues in a copy of it, and `at` in a copy up
    to a message. `folder` is where the original worked: a new worktree begins with its files.
    """

    cli_session: str | None = None
    fork: bool = False
    at: str | None = None
    folder: str | None = None
