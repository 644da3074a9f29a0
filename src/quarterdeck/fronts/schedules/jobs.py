"""The jobs of a hub: from the configuration and from the API, each with its plan and its state.

Pure. `scheduler` keeps the entries and acts on them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.schedules.plan import At, Plan, next_after, plan_of
from quarterdeck.fronts.schedules.sessions import spec_of
from quarterdeck.fronts.schedules.store import State
from quarterdeck.protocol.schedules import (
    Firing,
    FiringState,
    Job,
    Schedule,
    ScheduleShape,
)

log = logging.getLogger(__name__)

OWNER = "owner"
"""Whom the sessions of a job of the configuration belong to, where it names nobody."""
Source = Literal["config", "api"]


class Entry(Struct):
    """A job, as the scheduler keeps it."""

    job: Job
    plan: Plan | None
    """None: only a request or a person starts it."""
    source: Source
    state: State
    last: Firing | None = None
    """The newest start; None also if it was not looked up yet."""

    @property
    def owner(self) -> str:
        """The person whom its sessions belong to."""
        return self.job.owner or OWNER

    @property
    def paused(self) -> bool:
        """What a person chose, or else what was written."""
        return self.job.paused if self.state.paused is None else self.state.paused

    def next_time(self, now: float) -> float | None:
        """The next planned time; None if there is none, or while it is paused."""
        if self.plan is None or self.paused:
            return None
        # A time that has passed and is not decided yet is due now.
        return next_after(self.plan, min(self.state.cursor, now), self.state.anchor)


def checked_schedule(schedule: Schedule, now: float) -> Plan:
    """The plan of a new schedule. Raises `UsageError` if it is not valid, or is over already."""
    plan = plan_of(schedule)
    if isinstance(plan, At) and plan.moment <= now:
        raise UsageError("at: this time has passed")
    spec_of(schedule, now)
    return plan


def entries_of(
    configured: Iterable[Job],
    made: Iterable[Schedule],
    states: Mapping[str, State],
    now: float,
) -> dict[str, Entry]:
    """The entries by name. Raises `UsageError` for what is wrong in the configuration.

    A schedule of the API with the name of one in the configuration rests, and so does one that is
    not valid any more.
    """
    found: dict[str, Entry] = {}
    for job in configured:
        if job.name in found:
            raise UsageError(f"name: {job.name} is used twice")
        found[job.name] = _entry(job, "config", states.get(job.name), now)
    for schedule in made:
        if schedule.name in found:
            log.warning(
                "the schedule %s is in the configuration, too: that one is used", schedule.name
            )
            continue
        try:
            found[schedule.name] = _entry(schedule, "api", states.get(schedule.name), now)
        except UsageError as error:
            log.error("the schedule %s is not used: %s", schedule.name, error)
    return found


def _entry(job: Job, source: Source, state: State | None, now: float) -> Entry:
    plan = plan_of(job) if isinstance(job, Schedule) else None
    spec_of(job, now)
    text = _plan_text(job)
    if state is None:
        state = State(plan=text, anchor=now, cursor=now, written_paused=job.paused)
    if state.plan != text:  # other times: it begins anew
        state = replace(state, plan=text, anchor=now, cursor=now)
    if state.written_paused != job.paused:  # what was written last holds
        state = replace(state, paused=None, paused_by="", written_paused=job.paused)
    return Entry(job=job, plan=plan, source=source, state=state)


def _plan_text(job: Job) -> str:
    if not isinstance(job, Schedule):
        return "webhook"
    return "\n".join((job.cron or "", job.every or "", job.at or "", job.timezone))


def shape_of(entry: Entry, now: float, open_states: list[FiringState]) -> ScheduleShape:
    """A job, as people are shown it."""
    job, next_time = entry.job, entry.next_time(now)
    schedule = job if isinstance(job, Schedule) else None
    kind: Literal["cron", "every", "at", "webhook"] = "webhook"
    when = f"/in/{job.name}"
    if schedule is not None:
        if schedule.cron is not None:
            kind, when = "cron", schedule.cron
        elif schedule.every is not None:
            kind, when = "every", schedule.every
        else:
            kind, when = "at", schedule.at or ""
    return ScheduleShape(
        name=job.name,
        kind=kind,
        when=when,
        timezone=None if schedule is None else schedule.timezone,
        source=entry.source,
        owner=entry.owner,
        prompt=job.prompt,
        project=job.project,
        directory=job.directory,
        loop=job.loop is not None,
        catch_up=None if schedule is None else schedule.catch_up,
        overlap=job.overlap,
        max_running=job.max_running,
        per_day=job.per_day,
        budget_usd=job.budget_usd,
        budget_tokens=job.budget_tokens,
        paused=entry.paused,
        paused_by=entry.state.paused_by if entry.state.paused else "",
        next=None if next_time is None else int(next_time * 1000),
        running=open_states.count(FiringState.STARTED),
        waiting=open_states.count(FiringState.WAITING),
        last=entry.last,
    )
