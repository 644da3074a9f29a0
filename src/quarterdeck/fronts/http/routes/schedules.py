"""The routes of schedules: list, add, pause, resume, run, history, remove.

Owns the words of the routes and the rights that they need, and `Scheduling`: what they need of the
scheduler. A person who starts a session, now or later, needs the right to manage; to pause one, the
right to steer is enough.
"""

from __future__ import annotations

from typing import Annotated, Protocol

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, SkipValidation

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.audit_notes import Noter, note_change
from quarterdeck.fronts.http.routes.handlers import Asking, body_of
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.schedules import (
    Firing,
    FiringList,
    RunSchedule,
    Schedule,
    ScheduleList,
    ScheduleShape,
)

Name = Annotated[
    str, PathParameter(description="The name of a schedule", max_length=64, min_length=1)
]
Before = Annotated[
    str | None,
    QueryParameter(description="The `next` of the page before", max_length=64),
]
Limit = Annotated[int, QueryParameter(description="At most so many", ge=1, le=500)]


class Scheduling(Protocol):
    """The scheduler. Each method raises `NotFound` for a schedule that is none."""

    async def schedules(self) -> tuple[ScheduleShape, ...]:
        """All schedules, by name."""

    async def add(self, schedule: Schedule, by: str) -> ScheduleShape:
        """Add one of a person. Raises `UsageError`, `Conflict`."""

    async def remove(self, name: str, by: str) -> None:
        """Remove one. Raises `Conflict`."""

    async def pause(self, name: str, by: str, *, paused: bool = True) -> ScheduleShape:
        """Pause one, or resume it."""

    async def run_now(self, name: str, by: str, *, key: str | None = None) -> Firing:
        """Start a session now, once for a key. Raises `Conflict`."""

    async def firings(
        self, name: str, *, before: str | None = None, limit: int = 50
    ) -> tuple[Firing, ...]:
        """The starts of one, newest first."""


Planner = NamedDependency[SkipValidation[Scheduling | None]]


@get("/schedules", opt=documented(READ_ERRORS))
async def list_schedules(scheduling: Planner) -> ScheduleList:
    """The schedules and inbound webhooks, with their next time and their last start."""
    return ScheduleList(schedules=await _there(scheduling).schedules())


@post("/schedules", status_code=200, opt=documented(COMMAND_ERRORS, takes=Schedule))
async def add_schedule(request: Asking, scheduling: Planner, noting: Noter) -> ScheduleShape:
    """Add a schedule. Its sessions belong to you, and start only while you have access.

    `owner` must be left out. The same schedule again changes nothing.
    """
    request.user.need(Right.MANAGE)
    there, by = _there(scheduling), request.user.name
    made = await there.add(await body_of(request, Schedule), by)
    note = CodedText(code=TextCode.SCHEDULE_SAVED, name=by, other=made.name)
    await note_change(noting, "schedule", note)
    return made


@delete("/schedules/{name:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def remove_schedule(
    name: Name, request: Asking, scheduling: Planner, noting: Noter
) -> ScheduleList:
    """Remove a schedule and its history; gives those that are left. Its sessions stay."""
    request.user.need(Right.MANAGE)
    there, by = _there(scheduling), request.user.name
    await there.remove(name, by)
    note = CodedText(code=TextCode.SCHEDULE_REMOVED, name=by, other=name)
    await note_change(noting, "schedule", note)
    return ScheduleList(schedules=await there.schedules())


@post("/schedules/{name:str}/pause", status_code=200, opt=documented(COMMAND_ERRORS))
async def pause_schedule(name: Name, request: Asking, scheduling: Planner) -> ScheduleShape:
    """Pause a schedule: it starts nothing until it is resumed."""
    request.user.need(Right.STEER)
    return await _there(scheduling).pause(name, request.user.name)


@post("/schedules/{name:str}/resume", status_code=200, opt=documented(COMMAND_ERRORS))
async def resume_schedule(name: Name, request: Asking, scheduling: Planner) -> ScheduleShape:
    """Resume a schedule. Times that passed while it was paused are not caught up."""
    request.user.need(Right.MANAGE)
    return await _there(scheduling).pause(name, request.user.name, paused=False)


@post(
    "/schedules/{name:str}/run",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=RunSchedule, body_optional=True),
)
async def run_schedule(name: Name, request: Asking, scheduling: Planner) -> Firing:
    """Start a session of a schedule now, also while it is paused."""
    request.user.need(Right.MANAGE)
    there = _there(scheduling)
    wanted = await body_of(request, RunSchedule, empty_is=RunSchedule())
    return await there.run_now(name, request.user.name, key=wanted.id)


@get("/schedules/{name:str}/firings", opt=documented(READ_ERRORS))
async def list_firings(
    name: Name, scheduling: Planner, before: Before = None, limit: Limit = 50
) -> FiringList:
    """The starts of a schedule, newest first: also those that were skipped, with the reason."""
    found = await _there(scheduling).firings(name, before=before, limit=limit)
    more = found[-1].id if len(found) == limit else None
    return FiringList(firings=found, next=more)


def _there(scheduling: Scheduling | None) -> Scheduling:
    if scheduling is None:
        raise Refused("not_found", "this server has no schedules")
    return scheduling


HANDLERS = [
    list_schedules,
    add_schedule,
    remove_schedule,
    pause_schedule,
    resume_schedule,
    run_schedule,
    list_firings,
]
