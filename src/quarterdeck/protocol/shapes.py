"""Requests and answers of the HTTP API that are no commands: pages, lists, bodies.

The bodies of commands are the commands themselves (`command_table`). The OpenAPI document is made
from these structs. Bodies refuse members that they do not know. It knows neither HTTP nor people.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import Id, Name
from quarterdeck.protocol.machine_requests import Against, BlockId, TreeAction
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
    """Members that are present are changed."""

    name: Name | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    auto_approve: tuple[str, ...] | UnsetType = UNSET
    ask_timeout: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    """Replaces the old one. An empty budget removes all limits."""


class LoginCode(Body):
    """The code of a login link."""

    code: Annotated[str, Meta(max_length=200)]


class NewImport(Body):
    """Import sessions that the CLI left on the disk of the hub's machine."""

    directory: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    """Import only the sessions of the project in this folder."""
    sessions: tuple[Annotated[str, Meta(max_length=64)], ...] = ()
    """Import only these, by the CLI's session ids."""
    dry_run: bool = False


class NewRetention(Body):
    """Delete old sessions. Without any limit, the hub's configured limits apply."""

    days: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    megabytes: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    archived_only: bool = False
    dry_run: bool = True
    """Report only. Nothing is deleted unless it is false."""


class PolicyText(Body):
    """The text of a policy file."""

    text: Text


class PolicyFileChange(Body):
    """The new text of a policy file, and the version that it replaces."""

    text: Text
    version: Annotated[str, Meta(max_length=64)]
    """As it was read; empty: there was no such file."""


class CallQuestion(Body):
    """A call to explain. Omitted members are unknown, or taken from the session."""

    tool: Annotated[str, Meta(min_length=1, max_length=256)]
    argument: Text = ""
    """The input as a JSON object, or the tool's main argument, such as a command."""
    session: Id | None = None
    policy: Word | None = None
    text: Text | None = None
    """The text of a policy to use instead of the one in force."""
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
    """A policy to apply to past calls."""

    text: Text
    since: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """In ms since 1970; default: 30 days ago."""
    session: Id | None = None


class NewPolicyGrant(Body):
    """Allow calls without a question, until the grant is revoked or expires."""

    rules: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=50)]
    """In Claude Code's syntax: `Bash(npm test:*)`."""
    seconds: Annotated[float, Meta(gt=0, le=315_360_000)] | None = None
    directory: Word | None = None
    project: Word | None = None


class NewFile(Body):
    """A file for a session's folder."""

    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    data: bytes
    """In base64. At most 24 MiB."""


class WorktreeAction(Body):
    """What to do with a session's worktree."""

    action: TreeAction
    into: Branch | None = None
    """Merge into this branch; default: the one that the worktree was created from."""
    message: Annotated[str, Meta(min_length=1, max_length=100_000)] | None = None
    """Merge: commit uncommitted changes with this message first."""
    dry_run: bool = False
    """Only say what would happen. It is refused as the action itself would be."""


FilePath = Annotated[str, Meta(min_length=1, max_length=4096)]
RemoteUrl = Annotated[str, Meta(min_length=1, max_length=4096)]
Message = Annotated[str, Meta(min_length=1, max_length=100_000)]


class RevertBody(Body):
    """A change to undo: of a whole file, or of some blocks of its lines."""

    path: FilePath
    against: Against = Against.SESSION
    old_path: FilePath | None = None
    blocks: Annotated[tuple[BlockId, ...], Meta(max_length=2000)] = ()
    """Empty: the whole file."""
    digest: Annotated[str, Meta(max_length=64)] = ""
    """As the diff of the file had it. It is refused if the file has changed since."""


class StageBody(Body):
    """Files to add to the index, or (`staged` false) to take out of it."""

    paths: Annotated[tuple[FilePath, ...], Meta(min_length=1, max_length=2000)]
    staged: bool = True


class CommitBody(Body):
    """A commit of what is staged."""

    message: Message
    all_files: bool = False
    """Stage everything first."""


class PushBody(Body):
    """A push of the branch that is checked out, of what was seen and to where it was seen."""

    url: RemoteUrl
    commit: Annotated[str, Meta(min_length=40, max_length=64)]


class PullRequestBody(Body):
    """A pull request for the branch that is checked out and pushed."""

    url: RemoteUrl
    title: Annotated[str, Meta(min_length=1, max_length=500)]
    base: Branch
    body: Annotated[str, Meta(max_length=60_000)] = ""
    draft: bool = False


# --- answers -------------------------------------------------------------------------------------


class SessionPage(Value, omit_defaults=False):
    """A page of sessions, newest first. `next` is the `after` of the following page."""

    sessions: tuple[SessionShape, ...]
    next: str | None


class PromptList(Value, omit_defaults=False):
    """The queued prompts, in order."""

    prompts: tuple[PromptView, ...]


class EventPage(Value):
    """A page of history. `next` is the `after` of the following page, null at the end."""

    epoch: str
    events: tuple[EventShape, ...]
    next: int | None


class LatestEvents(Value):
    """A session with its last events: what a page that opens it shows first.

    There may be more events up to the `head` of the session, if these are large.
    """

    epoch: str
    session: SessionShape
    events: tuple[EventShape, ...]


class AskList(Value, omit_defaults=False):
    """The open questions, oldest first."""

    asks: tuple[AskView, ...]


class HubAlarm(Value, omit_defaults=False):
    """Something that is wrong between several hubs on one journal."""

    code: Literal["other_configuration", "other_policy", "unreachable"]
    """What differs from this hub: `quarterdeck.toml`, or `policy.toml`. `unreachable`: this hub
    gets no answer from the other one at the address that it announces."""
    hub: str
    """The address of the other hub."""


class MachineList(Value, omit_defaults=False):
    """The machines that run agents, or did."""

    machines: tuple[MachineView, ...]
    alarms: tuple[HubAlarm, ...] = ()
    """What is wrong between several hubs."""


class ProjectShape(Value, omit_defaults=False):
    """A project. The values of its environment are masked."""

    name: str
    defaults: Project


class ProjectList(Value, omit_defaults=False):
    """The projects, by name."""

    projects: tuple[ProjectShape, ...]


class Me(Value, omit_defaults=False):
    """The person that the token belongs to."""

    name: str
    role: Role
    rights: tuple[Right, ...]
    expires: float | None


class LoggedIn(Me):
    """The person who has logged in, and the key of their page."""

    page_key: str
    """For the header `X-Quarterdeck-Page-Key`: the cookie alone is not enough."""


class Health(Value, omit_defaults=False):
    """The server answers."""

    ok: bool
    version: str
