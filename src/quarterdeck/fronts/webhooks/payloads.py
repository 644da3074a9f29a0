"""The payloads, as types, and the translation from events.

Pure. A payload is bounded: texts are cut, so that it stays far below what any receiver accepts. Its
shape follows the Standard Webhooks convention: `type`, `timestamp`, `data`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Raw

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.webhooks.settings import WebhookEvent
from quarterdeck.protocol import events
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored

LONGEST_TEXT = 4000
"""Characters of a text; a cut is marked by «…»."""
LONGEST_WORD = 300
"""Characters of a name, a title, a path."""

Link = Callable[[str], str]
"""From a session's id to the address of its page."""


class SessionPart(Value):
    """The session that it is about."""

    id: str
    name: str
    url: str
    """The address of its page, where people read and answer."""
    directory: str
    machine: str | None = None
    project: str | None = None


class AskData(Value):
    """A question that waits for a person."""

    session: SessionPart
    ask: str
    """Its id: what `POST /api/asks/{ask}/answer` takes."""
    kind: events.AskKind
    tool: str
    title: str
    plan: str | None = None


class TurnData(Value):
    """A turn that has ended."""

    session: SessionPart
    failed: bool
    outcome: str
    cost_usd: float
    text: str = ""
    duration_ms: int | None = None


class BudgetData(Value):
    """A budget that is used up."""

    session: SessionPart
    scope: str
    unit: str
    limit: float
    spent: float


class DiedData(Value):
    """A CLI that ended unexpectedly."""

    session: SessionPart
    run: str
    reason: str
    code: str = ""
    """The reason as a code; empty: `reason` is the message of a machine."""
    exit_code: int | None = None
    signal: int | None = None


class AlarmData(Value):
    """A problem of a run."""

    session: SessionPart
    alarm: str
    text: str
    action: str = ""
    act: str = ""
    """The action as a code."""


class Payload(Value, tag_field="type"):
    """The base of all payloads. `timestamp` is the time of the event, not of the delivery."""

    timestamp: str


class AskOpened(Payload, tag=WebhookEvent.ASK_OPENED.value):
    """An agent is waiting."""

    data: AskData


class TurnEnded(Payload, tag=WebhookEvent.TURN_ENDED.value):
    """A turn has ended."""

    data: TurnData


class BudgetReached(Payload, tag=WebhookEvent.BUDGET_REACHED.value):
    """A budget is used up."""

    data: BudgetData


class AgentDied(Payload, tag=WebhookEvent.AGENT_DIED.value):
    """An agent died."""

    data: DiedData


class AlarmRaised(Payload, tag=WebhookEvent.ALARM_RAISED.value):
    """The watchdog raised an alarm."""

    data: AlarmData


AnyPayload = AskOpened | TurnEnded | BudgetReached | AgentDied | AlarmRaised


def event_of(event: events.Event) -> WebhookEvent | None:
    """The webhook event for an event of the journal; None if there is none."""
    match event:
        case events.AskOpened():
            return WebhookEvent.ASK_OPENED
        case events.TurnEnded():
            return WebhookEvent.TURN_ENDED
        case events.BudgetReached():
            return WebhookEvent.BUDGET_REACHED
        case events.RunEnded(clean=False):
            return WebhookEvent.AGENT_DIED
        case events.Alarmed():
            return WebhookEvent.ALARM_RAISED
        case _:
            return None


def payload_of(stored: Stored, view: SessionView, link: Link) -> AnyPayload | None:
    """The payload for an event; None where `event_of` returns None."""
    at = _time(stored.at)
    session = _session(view, link)
    match with_texts(stored.event):
        case events.AskOpened(ask=ask, ask_kind=kind, tool=tool, title=title, plan=plan):
            data = AskData(
                session=session,
                ask=ask,
                kind=kind,
                tool=_cut(tool, LONGEST_WORD),
                title=_cut(title, LONGEST_WORD),
                plan=None if plan is None else _cut(plan, LONGEST_TEXT),
            )
            return AskOpened(timestamp=at, data=data)
        case events.TurnEnded() as ended:
            turn = TurnData(
                session=session,
                failed=ended.failed,
                outcome=_cut(ended.outcome, LONGEST_WORD),
                cost_usd=ended.cost_usd,
                text=_cut(ended.text, LONGEST_TEXT),
                duration_ms=ended.duration_ms,
            )
            return TurnEnded(timestamp=at, data=turn)
        case events.BudgetReached(scope=scope, unit=unit, limit=limit, spent=spent):
            budget = BudgetData(session=session, scope=scope, unit=unit, limit=limit, spent=spent)
            return BudgetReached(timestamp=at, data=budget)
        case events.RunEnded(clean=False) as ended_run:
            died = DiedData(
                session=session,
                run=ended_run.run,
                reason=_cut(ended_run.reason, LONGEST_TEXT),
                code="" if ended_run.coded is None else ended_run.coded.code,
                exit_code=ended_run.exit_code,
                signal=ended_run.signal,
            )
            return AgentDied(timestamp=at, data=died)
        case events.Alarmed(alarm=alarm, text=text, action=action, act=act):
            raised = AlarmData(
                session=session,
                alarm=_cut(alarm, LONGEST_WORD),
                text=_cut(text, LONGEST_TEXT),
                action=_cut(action, LONGEST_TEXT),
                act=act,
            )
            return AlarmRaised(timestamp=at, data=raised)
        case _:
            return None


SAMPLES: dict[WebhookEvent, events.AnyEvent] = {
    WebhookEvent.ASK_OPENED: events.AskOpened(
        ask="00000000000000000000000000.00000000000000000000000000",
        run="00000000000000000000000000",
        request_id="sample",
        ask_kind=events.AskKind.TOOL,
        tool="Bash",
        title="command: make test",
        request=Raw(b"{}"),
    ),
    WebhookEvent.TURN_ENDED: events.TurnEnded(
        prompts=(),
        failed=False,
        outcome="success",
        cost_usd=0.0421,
        text="All tests pass.",
        duration_ms=73210,
    ),
    WebhookEvent.BUDGET_REACHED: events.BudgetReached(
        scope="session", unit="usd", limit=5.0, spent=5.02
    ),
    WebhookEvent.AGENT_DIED: events.RunEnded(
        run="00000000000000000000000000",
        reason="",
        coded=CodedText(code=TextCode.PROCESS_ENDED),
        exit_code=-9,
        signal=9,
    ),
    WebhookEvent.ALARM_RAISED: events.Alarmed(
        alarm="no_result",
        text="",
        coded=CodedText(code=TextCode.NO_RESULT, seconds=1800),
        act=AlarmAct.TURN_INTERRUPTED.value,
    ),
}
"""A sample event of each kind, for people who set up a receiver, and for the documentation."""


def sample(event: WebhookEvent, at: int, link: Link) -> AnyPayload:
    """A sample payload of this kind."""
    spec = SessionSpec(directory="/home/me/work", project="work")
    view = SessionView(
        session="00000000000000000000000000", name="a sample", spec=spec, machine="local"
    )
    stored = Stored(session=view.session, seq=1, position=0, at=at, event=SAMPLES[event], json=b"")
    payload = payload_of(stored, view, link)
    assert payload is not None
    return payload


def _session(view: SessionView, link: Link) -> SessionPart:
    return SessionPart(
        id=view.session,
        name=_cut(view.name, LONGEST_WORD),
        url=link(view.session),
        directory=_cut(view.directory or view.spec.directory, LONGEST_WORD),
        machine=view.machine,
        project=view.spec.project,
    )


def _cut(text: str, limit: int) -> str:
    # Half a surrogate pair is not valid JSON, and many receivers reject NUL.
    text = text[: limit + 1].encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
