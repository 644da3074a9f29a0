"""A project: a directory with defaults for the sessions in it.

Owns what a project may say, and what that means for a session: `resolved` is a pure function from
what was asked for to what is started. The hub keeps the result, so that a project that changes
later changes no session that there is.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import replace

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.sandbox import SandboxSettings, merged_options
from quarterdeck.protocol.sessions import Budget, RestartRule, SessionSpec

HERE = "local"
"""What the hub's own machine is called when nobody gave it another name."""

BYPASS = "bypassPermissions"

Amount = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(gt=0)]
PlacePath = Annotated[str, Meta(min_length=1, extra={"path": True})]
"""A path; in a configuration file it may begin with `~`, or be relative to that file."""


class ProjectBudget(Value, forbid_unknown_fields=True):
    """What may be spent in a project: in each run, each session, and in all of them together."""

    run_usd: Amount | None = None
    run_tokens: Count | None = None
    session_usd: Amount | None = None
    session_tokens: Count | None = None
    total_usd: Amount | None = None
    total_tokens: Count | None = None

    @property
    def of_sessions(self) -> Budget:
        """The part that each session has for itself."""
        return Budget(
            run_usd=self.run_usd,
            run_tokens=self.run_tokens,
            session_usd=self.session_usd,
            session_tokens=self.session_tokens,
        )


class Project(Value, forbid_unknown_fields=True):
    """A directory, and what holds for its sessions where they say nothing themselves.

    That nothing is asked (`skip_permissions`) is no default, here neither.
    """

    directory: PlacePath
    machine: str | None = None
    model: str | None = None
    mode: str | None = None
    effort: str | None = None
    policy: str | None = None
    budget: ProjectBudget | None = None
    sandbox: SandboxSettings | None = None
    env: dict[str, str] = field(default_factory=dict)
    claude: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    auto_approve: tuple[str, ...] = ()
    add_dirs: tuple[PlacePath, ...] = ()
    settings: str | None = None
    max_turns: Count | None = None
    ask_timeout: Amount | None = None
    api_billing: bool = False
    restart: RestartRule | bool = "faults"
    session_mirror: bool = False
    """The journal has the transcripts of its sessions, so that another machine can resume them."""

    def __post_init__(self) -> None:
        """Refuse what no session could be started with."""
        if not self.directory.startswith("/"):
            raise UsageError("directory: must be an absolute path")
        if self.mode == BYPASS:
            raise UsageError(f"mode: {BYPASS} is never a default")


_DEFAULTS = (
    "machine", "model", "mode", "effort", "policy", "claude", "system_prompt",
    "append_system_prompt", "allowed_tools", "disallowed_tools", "auto_approve", "add_dirs",
    "settings", "max_turns", "ask_timeout",
)  # fmt: skip
"""What is taken from the project as it is, where the session has nothing."""


def resolve_spec(spec: SessionSpec, projects: Mapping[str, Project]) -> SessionSpec:
    """The spec with its project's defaults. Raises `NotFound` for a project that is none.

    A session that names no project belongs to the one in whose directory it is made: the innermost.
    """
    name = spec.project or _project_of(spec, projects)
    if name is None:
        return spec
    project = projects.get(name)
    if project is None:
        raise NotFound("project", name)
    taken = {
        each: getattr(project, each)
        for each in _DEFAULTS
        if getattr(spec, each) in (None, ()) and getattr(project, each) not in (None, ())
    }
    if spec.skip_permissions:
        taken.pop("mode", None)  # a default must not take the place of what a person asked for
    for prompt in ("system_prompt", "append_system_prompt"):
        if getattr(spec, f"{prompt}_file") is not None:
            taken.pop(prompt, None)
    return replace(
        with_sandbox(spec, project.sandbox),
        **taken,
        project=name,
        directory=spec.directory or project.directory,
        env={**project.env, **spec.env},
        budget=merge_budgets(spec.budget, project.budget.of_sessions if project.budget else None),
        api_billing=spec.api_billing or project.api_billing,
        session_mirror=spec.session_mirror or project.session_mirror,
        restart=project.restart if spec.restart_rule == "faults" else spec.restart,
    )


def with_sandbox(spec: SessionSpec, default: SandboxSettings | None) -> SessionSpec:
    """The spec with a default for its sandbox, where it says nothing itself."""
    if default is None:
        return spec
    return replace(
        spec,
        sandbox=spec.sandbox or default.mode,
        sandbox_options=merged_options(spec.sandbox_options, default),
    )


def _project_of(spec: SessionSpec, projects: Mapping[str, Project]) -> str | None:
    there = spec.machine or HERE
    around = [
        (len(directory), name)
        for name, project in projects.items()
        if (project.machine or HERE) == there
        and _is_within(spec.directory, directory := os.path.normpath(project.directory))
    ]
    return max(around)[1] if around else None


def _is_within(path: str, directory: str) -> bool:
    """By the names alone: the folder may be on another machine."""
    path = os.path.normpath(path)
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def merge_budgets(own: Budget | None, default: Budget | None) -> Budget | None:
    """A budget, with a default for each limit that it does not set."""
    if default is None or default == Budget():
        return own
    own = own or Budget()
    missing = {
        name: getattr(default, name) for name in own.__struct_fields__ if getattr(own, name) is None
    }
    return replace(own, **missing)
