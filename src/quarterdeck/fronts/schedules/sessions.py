"""The sessions of starts: make one, see what became of it, end it.

Above is `scheduler`, which decides that a start is due. Each function may be called again after a
crash: ids of sessions and prompts follow from the id of the start.
"""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import NotFound, QuarterdeckError
from quarterdeck.domain.ids import derived_id
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.schedules import decide
from quarterdeck.hub.api import HubApi, own_work
from quarterdeck.protocol.commands import CreateSession, StopSession
from quarterdeck.protocol.events import TurnEnded
from quarterdeck.protocol.projects import HERE
from quarterdeck.protocol.schedules import Firing, Job, Schedule
from quarterdeck.protocol.session_view import PromptStage, SessionView
from quarterdeck.protocol.sessions import Budget, SessionSpec, SessionState

LOOK_BACK = 300
"""Events before the end of a history in which the end of the turn is looked for."""
LONGEST_DETAIL = 300


class Ending(Value):
    """How the work of a start ended. `reason` is empty if it went well."""

    reason: str = ""
    detail: str = ""
    cost_usd: float = 0.0
    running: bool = False
    """Its CLI still runs, and nobody else uses it."""


def firing_id(job: str, key: str) -> str:
    """The id of a start: the same for the same schedule and the same key."""
    return derived_id(0.0, "schedule", job, key)


def session_id(firing: Firing) -> str:
    """The id of the session of a start; it sorts by the planned time."""
    return derived_id(firing.planned / 1000, "schedule", firing.id)


def zone_of(job: Job) -> str:
    """The zone in which the times and the days of a job are meant."""
    return job.timezone if isinstance(job, Schedule) else "UTC"


def spec_of(job: Job, planned: float) -> SessionSpec:
    """How the session of a start is begun. Raises `UsageError`."""
    at = datetime.fromtimestamp(planned, ZoneInfo(zone_of(job)))
    budget = None
    if job.budget_usd is not None or job.budget_tokens is not None:
        budget = Budget(session_usd=job.budget_usd, session_tokens=job.budget_tokens)
    return SessionSpec(
        directory=job.directory or "",
        machine=job.machine,
        name=f"{job.name} {at:%Y-%m-%d %H:%M}",
        project=job.project,
        worktree=f"{job.name}-{at:%Y%m%dT%H%M%S}" if job.worktree else None,
        model=job.model,
        mode=job.mode,
        effort=job.effort,
        policy=job.policy,
        budget=budget,
        ask_timeout=job.ask_timeout,
    )


async def machine_is_known(hub: HubApi, machine: str | None) -> bool:
    """Whether a machine can be given work. The hub's own machine always can."""
    if machine is None or machine == HERE:
        return True
    return any(each.name == machine and each.connected for each in await hub.machines())


async def start_session(hub: HubApi, job: Job, firing: Firing, prompt: str, owner: str) -> str:
    """Start the session of a start, or find the one that there is; gives its id.

    Raises what the hub raises.
    """
    command = CreateSession(
        spec=spec_of(job, firing.planned / 1000),
        session=session_id(firing),
        prompt=Raw(msgspec.json.encode(prompt)),
        prompt_id=_prompt_id(firing),
        by=owner,
    )
    with own_work("schedules"):
        return (await hub.submit(command)).session


async def ending_of(hub: HubApi, firing: Firing) -> Ending | None:
    """How the work of a start ended; None while it goes on.

    A session that has ended before its prompt was done may be resumed by the hub or by a person:
    the caller decides how long to wait for that (`Ending.reason` is `ended`).
    """
    session = session_id(firing)
    view = hub.view(session)
    if view is None:
        try:
            view = await hub.session(session)
        except NotFound:
            return Ending(reason=decide.DELETED)
    if view.deleted:
        return Ending(reason=decide.DELETED)
    stage = view.prompts.get(_prompt_id(firing))
    if stage is PromptStage.CANCELLED:
        return Ending(reason=decide.CANCELLED, cost_usd=view.cost_usd, running=_is_alone(view))
    if stage is PromptStage.DONE or (stage is None and view.prompts_forgotten):
        if view.run is not None and not _is_idle(view):
            return None
        return await _ending_of_turn(hub, view, firing)
    if view.run is None:
        return Ending(reason=decide.ENDED, detail=short(view.detail), cost_usd=view.cost_usd)
    return None


async def end_session(hub: HubApi, session: str, owner: str) -> None:
    """End the CLI of a session. One that has ended, or is gone, stays so."""
    try:
        with own_work("schedules"):
            await hub.submit(StopSession(session=session, by=owner))
    except QuarterdeckError:
        return


def _prompt_id(firing: Firing) -> str:
    return derived_id(firing.planned / 1000, "schedule prompt", firing.id)


def _is_idle(view: SessionView) -> bool:
    return view.state is SessionState.IDLE and not view.unsent and not view.holds.tasks


def _is_alone(view: SessionView) -> bool:
    """Whether the session runs, and has only the prompt of its start."""
    return view.run is not None and len(view.prompts) == 1 and not view.prompts_forgotten


async def _ending_of_turn(hub: HubApi, view: SessionView, firing: Firing) -> Ending:
    after = max(0, view.head - LOOK_BACK)
    reason = detail = ""
    for stored in await hub.events(view.session, after=after, limit=LOOK_BACK):
        match stored.event:
            case TurnEnded(prompts=prompts, failed=True, outcome=outcome) if (
                _prompt_id(firing) in prompts
            ):
                reason, detail = decide.TURN_FAILED, short(outcome)
    return Ending(reason=reason, detail=detail, cost_usd=view.cost_usd, running=_is_alone(view))


def short(text: str) -> str:
    """The words of an error for a list: one line, and not long."""
    return re.sub(r"\s+", " ", text).strip()[:LONGEST_DETAIL]
