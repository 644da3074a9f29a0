"""Requests and answers of the HTTP API that are no commands: pages, lists, bodies.

The bodies of commands are the commands themselves (`command_table`). The OpenAPI document is made
from these structs. Bodies refuse members that they do not know. It knows neither HTTP nor people.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import Id, Name
from quarterdeck.protocol.machine_requests import TreeAction
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.roles import Right, Role
from quarterdeck.protocol.sessions import Budget
from quarterdeck.protocol.views import AskView, EventShape, MachineView, PromptView, SessionShape

Text = Annotated[str, Meta(max_length=1_000_000)]
Word = Annotated[str, Meta(max_length=4096)]
Branch = Annotated[str, Meta(min_length=1, max_length=250)]


class Body(Value, forbid_unknown_fields=True):
    """The base of all bodies."""


class SessionChanges(Body):
    """What is given is changed, the rest stays."""

    name: Name | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    auto_approve: tuple[str, ...] | UnsetType = UNSET
    ask_timeout: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    """Takes the place of the old one, whole. An empty one lifts all limits."""


class LoginCode(Body):
    """The code of a login link."""

    code: Annotated[str, Meta(max_length=200)]


class NewImport(Body):
    """Take in sessions that the CLI left on the disk of the hub's machine."""

    directory: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    """Only those of the project in this folder."""
    sessions: tuple[Annotated[str, Meta(max_length=64)], ...] = ()
    """Only these, by the CLI's own ids."""
    dry_run: bool = False


class NewRetention(Body):
    """Delete what is old. What is left out is no limit; all left out: the rule of the hub holds."""

    days: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    megabytes: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    archived_only: bool = False
    dry_run: bool = True
    """Only tell what would go. It must be false for anything to be deleted."""


class PolicyText(Body):
    """A policy, as its file would have it."""

    text: Text


class CallQuestion(Body):
    """A call to be explained. What is left out is unknown, or the session's."""

    tool: Annotated[str, Meta(min_length=1, max_length=256)]
    argument: Text = ""
    """The input, as a JSON object; or the one argument that the tool is about, as a command."""
    session: Id | None = None
    policy: Word | None = None
    text: Text | None = None
    """A policy's text to try, in place of what is in force."""
    cwd: Word | None = None
    branch: Word | None = None
    project: Word | None = None
    machine: Word | None = None
    user: Word | None = None
    mode: Word | None = None
    origin: Word | None = None
    cost: float | None = None
    at: Annotated[int, Meta(ge=0, le=2**50)] | None = None


class PolicyTrial(Body):
    """A policy to be held against the calls of the past."""

    text: Text
    since: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """In ms since 1970; else the last 30 days."""
    session: Id | None = None


class NewPolicyGrant(Body):
    """Allow something without a question, until it is revoked or for some time."""

    rules: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=50)]
    """In Claude Code's words: `Bash(npm test:*)`."""
    seconds: Annotated[float, Meta(gt=0, le=315_360_000)] | None = None
    directory: Word | None = None
    project: Word | None = None


class WorktreeAction(Body):
    """What is to become of a session's worktree."""

    action: TreeAction
    into: Branch | None = None
    """Merge into this branch and not into the one that the worktree was made from."""
    message: Annotated[str, Meta(min_length=1, max_length=100_000)] | None = None
    """Merge: commit with this message first what is not committed."""


# --- answers -------------------------------------------------------------------------------------


class SessionPage(Value, omit_defaults=False):
    """Sessions, newest first. `next` is the `after` of the following page."""

    sessions: tuple[SessionShape, ...]
    next: str | None


class PromptList(Value, omit_defaults=False):
    """The prompts that wait for their turn, in their order."""

    prompts: tuple[PromptView, ...]


class EventPage(Value):
    """A page of history. `next` is the `after` of the following page, null at the end."""

    epoch: str
    events: tuple[EventShape, ...]
    next: int | None


class AskList(Value, omit_defaults=False):
    """The open questions, oldest first."""

    asks: tuple[AskView, ...]


class MachineList(Value, omit_defaults=False):
    """The machines that run agents, or did."""

    machines: tuple[MachineView, ...]


class ProjectShape(Value, omit_defaults=False):
    """A project. The values of its environment are masked."""

    name: str
    defaults: Project


class ProjectList(Value, omit_defaults=False):
    """The projects, by name."""

    projects: tuple[ProjectShape, ...]


class Me(Value, omit_defaults=False):
    """Whoever asks."""

    name: str
    role: Role
    rights: tuple[Right, ...]
    expires: float | None


class LoggedIn(Me):
    """Whoever has logged in, and the key of the page that did."""

    page_key: str
    """For the header `X-Quarterdeck-Page-Key`: the cookie alone opens nothing."""


class Health(Value, omit_defaults=False):
    """The server answers."""

    ok: bool
    version: str
