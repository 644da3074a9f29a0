"""The planned times of a schedule: cron expressions, intervals, single times, and time zones. Pure.

Times are seconds since 1970, so that nothing else here has to know zones. When clocks change, cron
expressions follow Debian's cron: a job with a fixed hour that falls into the skipped hour runs when
the hour is over, and one in the repeated hour runs once, the first time; jobs that run every hour
or more often follow the clock. Intervals do not know clocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.schedules import Schedule

SHORTEST = 60.0
"""Seconds of an interval."""
LONGEST = 366 * 86400.0
AROUND_CHANGE = 4 * 3600.0
"""A clock is changed by less; within this time a later time on the clock may be an earlier one."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_INTERVAL = re.compile(r"([0-9]{1,9})([smhd])")
_LATEST = 32_503_680_000.0
"""The year 3000: beyond it a date cannot be computed with."""


class Cron(Value):
    """Times by a cron expression in a zone."""

    expression: str
    zone: str


class Every(Value):
    """Times at an interval, counted from when the schedule was made."""

    seconds: float


class At(Value):
    """One time."""

    moment: float


Plan = Cron | Every | At


def plan_of(schedule: Schedule) -> Plan:
    """The plan of a schedule. Raises `UsageError`, which names the member."""
    zone = _zone(schedule.timezone)
    if schedule.cron is not None:
        return _cron(schedule.cron, schedule.timezone)
    if schedule.every is not None:
        return _every(schedule.every)
    return _at(schedule.at or "", zone)


def next_after(plan: Plan, after: float, anchor: float) -> float | None:
    """The first planned time after a time; None if there is none. `anchor` starts an interval."""
    match plan:
        case At(moment=moment):
            return moment if moment > after else None
        case Every(seconds=seconds):
            steps = max(1, int((after - anchor) // seconds) + 1)
            return anchor + steps * seconds
        case Cron():
            return next((time for time in _forward(plan, after) if time > after), None)


def due_between(plan: Plan, after: float, until: float, anchor: float, most: int) -> list[float]:
    """The newest planned times after `after` up to `until`, oldest first; at most `most`."""
    if until <= after or most < 1:
        return []
    match plan:
        case At(moment=moment):
            return [moment] if after < moment <= until else []
        case Every(seconds=seconds):
            last = int((until - anchor) // seconds)
            first = max(1, int((after - anchor) // seconds) + 1, last - most + 1)
            return [anchor + step * seconds for step in range(first, last + 1)]
        case Cron():
            return _newest(plan, after, until, most)


def _forward(plan: Cron, after: float) -> Iterator[float]:
    # The library compares times on the clock: in the repeated hour it may begin with a past time.
    for time in CronSim(plan.expression, datetime.fromtimestamp(after, ZoneInfo(plan.zone))):
        yield time.timestamp()


def _newest(plan: Cron, after: float, until: float, most: int) -> list[float]:
    # Backwards, so that a year of minutes takes no longer than an hour of them.
    begin = datetime.fromtimestamp(until + AROUND_CHANGE, ZoneInfo(plan.zone))
    found: set[float] = set()
    for time in CronSim(plan.expression, begin, reverse=True):
        moment = time.timestamp()
        if moment <= after - AROUND_CHANGE:
            break
        if after < moment <= until:
            found.add(moment)  # several times of the skipped hour become one
            if len(found) == most:
                break
    return sorted(found)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(f"timezone: there is no time zone {name!r}") from error


def _cron(expression: str, zone: str) -> Cron:
    if len(expression.split()) != 5:
        raise UsageError(
            "cron: five fields are required: minute, hour, day of month, month, day of week"
        )
    plan = Cron(expression=expression, zone=zone)
    try:
        first = next(_forward(plan, datetime.now(UTC).timestamp()), None)
    except (CronSimError, ValueError, AssertionError) as error:
        raise UsageError(f"cron: not a cron expression: {error}") from error
    if first is None:
        raise UsageError("cron: it has no time within the next 50 years")
    return plan


def _every(text: str) -> Every:
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise UsageError("every: an interval is required, such as 90m, 6h or 1d")
    seconds = float(int(found[1]) * _UNITS[found[2]])
    if not SHORTEST <= seconds <= LONGEST:
        raise UsageError("every: must be from 1m to 366d")
    return Every(seconds=seconds)


def _at(text: str, zone: ZoneInfo) -> At:
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError("at: a time in ISO 8601 is required, as 2030-01-31T18:00") from error
    if given.tzinfo is None:
        given = given.replace(tzinfo=zone)
        if given.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != given.replace(
            tzinfo=None
        ):
            raise UsageError("at: this time does not exist: clocks are set forward then")
    try:
        moment = (given - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
    except OverflowError as error:
        raise UsageError("at: the time is too far away") from error
    if not 0 < moment < _LATEST:
        raise UsageError("at: the time is too far away")
    return At(moment=moment)
