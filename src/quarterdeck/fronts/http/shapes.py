"""What the API takes and gives: the structs from which its OpenAPI document is made.

Bodies refuse members that they do not know. Views of the hub become shapes here, with what is
secret in them masked. Above are the routes; it knows neither HTTP nor people.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Raw, UnsetType

from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.fronts.http.masking import masked_spec
from quarterdeck.fronts.http.roles import Right, Role
from quarterdeck.hub.api import MachineView
from quarterdeck.hub.permissions.modes import chosen_mode
from quarterdeck.journal.views import AskView, PromptView, SessionView
from quarterdeck.protocol.commands import Answer
from quarterdeck.protocol.events import AnyEvent, BudgetReached
from quarterdeck.protocol.sessions import Budget, SessionSpec, SessionState

Id = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
"""An id of the caller's choice: printable ASCII, so that it can stand in a URL or a log."""
Name = Annotated[str, Meta(min_length=1, max_length=500)]


class Body(Value, forbid_unknown_fields=True):
    """The base of all bodies."""


class NewSession(Body):
    """Make a session and start it."""

    spec: SessionSpec
    session: Id | None = None
    """An id of your own: the same one twice makes one session."""
    prompt: Raw = ABSENT
    """The first prompt: a text, or content blocks of the Messages API."""
    prompt_id: Id | None = None
    cli_session: Id | None = None
    """Go on with a conversation that the CLI had before."""


class SessionChanges(Body):
    """What is given is changed, the rest stays."""

    name: Name | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    auto_approve: tuple[str, ...] | UnsetType = UNSET
    ask_timeout: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    """Takes the place of the old one, whole. An empty one lifts all limits."""


class NewPrompt(Body):
    """Have something done. The same `prompt` id twice is once."""

    content: Raw
    prompt: Id | None = None


class PromptChange(Body):
    """Have something else done."""

    content: Raw


class NewFork(Body):
    """A session that begins with a copy of another, up to the message `at`."""

    at: str | None = None
    name: Name | None = None


class ControlRequest(Body):
    """A control request for the CLI: its body with its subtype."""

    request: Raw
    timeout: Annotated[float, Meta(gt=0, le=600)] = 60.0


class AskAnswer(Body):
    """The answer to a question."""

    answer: Answer


class LoginCode(Body):
    """The code of a login link."""

    code: Annotated[str, Meta(max_length=200)]


class AlarmShape(Value, omit_defaults=False):
    """Something is wrong with a run; `action` is what was done about it."""

    alarm: str
    text: str
    action: str
    at: int


class SessionShape(Value, omit_defaults=False):
    """A session."""

    session: str
    name: str
    state: SessionState
    detail: str
    """A few words on the state: why it ended, what is retried."""
    spec: SessionSpec
    """How its CLI is started. The values of `env` and of MCP servers' secrets are masked."""
    by: str
    parent: str | None
    created: int
    updated: int
    archived: bool
    head: int
    """The number of its last event."""
    run: str | None
    machine: str | None
    pid: int | None
    version: str | None
    directory: str | None
    cli_session: str | None
    mode: str | None
    """The permission mode that holds now, or held last; null where only the CLI's settings know."""
    model: str | None
    """The model, likewise; the CLI may tell it by another name than the one it was given."""
    turns: int
    cost_usd: float
    estimated_usd: float
    """How much of the cost no total of the CLI has told yet."""
    tokens: int
    budgets: tuple[BudgetReached, ...]
    """The limits that are reached. Until they are raised, or freed, no prompt is begun."""
    alarms: tuple[AlarmShape, ...]
    """What is wrong with the run, or was with the last one."""
    queued: int
    asks: int


class SessionPage(Value, omit_defaults=False):
    """Sessions, newest first. `next` is the `after` of the following page."""

    sessions: tuple[SessionShape, ...]
    next: str | None


class PromptList(Value, omit_defaults=False):
    """The prompts that wait for their turn, in their order."""

    prompts: tuple[PromptView, ...]


class EventShape(Value):
    """An event in its place: `seq` counts within its session, `position` over all."""

    session: str
    seq: int
    position: int
    at: int
    """Milliseconds since the epoch of Unix."""
    event: AnyEvent


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


def session_shape(view: SessionView) -> SessionShape:
    """A session as the API gives it."""
    return SessionShape(
        session=view.session,
        name=view.name,
        state=view.state,
        detail=view.detail,
        spec=masked_spec(view.spec),
        by=view.by,
        parent=view.parent,
        created=view.created,
        updated=view.updated,
        archived=view.archived,
        head=view.head,
        run=view.run,
        machine=view.machine,
        pid=view.pid,
        version=view.version,
        directory=view.directory,
        cli_session=view.cli_session,
        mode=view.mode or chosen_mode(view.spec),
        model=view.model or view.spec.model,
        turns=view.turns,
        cost_usd=view.cost_usd,
        estimated_usd=view.account.estimated_usd,
        tokens=view.account.tokens,
        budgets=tuple(view.account.budgets.values()),
        alarms=tuple(
            AlarmShape(alarm=name, text=alarm.text, action=alarm.action, at=alarm.at)
            for name, alarm in view.account.alarms.items()
        ),
        queued=len(view.queued),
        asks=len(view.asks),
    )
