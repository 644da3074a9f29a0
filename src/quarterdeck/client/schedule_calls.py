"""The calls of the hub's API about schedules, as values; see `calls`."""

from __future__ import annotations

from urllib.parse import quote

from quarterdeck.client.calls import Call, get, send
from quarterdeck.protocol.schedules import (
    Firing,
    FiringList,
    RunSchedule,
    Schedule,
    ScheduleList,
    ScheduleShape,
)


def schedules() -> Call[ScheduleList]:
    """The schedules and inbound webhooks, by name."""
    return get("/api/schedules", ScheduleList)


def add_schedule(schedule: Schedule) -> Call[ScheduleShape]:
    """Add a schedule. The same one again changes nothing."""
    return send("POST", "/api/schedules", ScheduleShape, schedule)


def remove_schedule(name: str) -> Call[ScheduleList]:
    """Remove a schedule; gives those that are left."""
    return send("DELETE", _at(name), ScheduleList)


def pause_schedule(name: str, *, paused: bool = True) -> Call[ScheduleShape]:
    """Pause a schedule, or resume it."""
    return send("POST", _at(name, "pause" if paused else "resume"), ScheduleShape)


def run_schedule(name: str, id_: str | None = None) -> Call[Firing]:
    """Start a session now, once for an id."""
    return send("POST", _at(name, "run"), Firing, RunSchedule(id=id_))


def firings(name: str, *, before: str | None = None, limit: int = 50) -> Call[FiringList]:
    """The starts of a schedule, newest first."""
    return get(_at(name, "firings"), FiringList, {"before": before, "limit": limit})


def _at(name: str, *more: str) -> str:
    return "/".join(["/api/schedules", *(quote(part, safe="") for part in (name, *more))])
