"""Decisions about planned times and starts. Pure: the clock and all counts are given.

A planned time is *late* when it passed while the hub did not run or the machine slept. The rule of
the schedule says what happens to late times; one that is on time is always taken.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.schedules import CatchUp, Cause, Job

ON_TIME = 90.0
"""Seconds after which a planned time is late. A busy hub looks at its schedules each second."""
MOST_WAITING = 20
"""Starts of one job that wait at the same time."""

MISSED = "missed"
STILL_RUNNING = "still_running"
DAY_LIMIT = "day_limit"
QUEUE_FULL = "queue_full"
NO_ACCESS = "owner_has_no_access"
NO_MACHINE = "machine_not_connected"
TIME_LIMIT = "time_limit"
NOT_STARTED = "not_started"
TURN_FAILED = "turn_failed"
ENDED = "ended"
DELETED = "session_deleted"
CANCELLED = "prompt_cancelled"


class Planned(Value):
    """A planned time that is due; `reason` says why nothing is started, if so."""

    time: float
    reason: str = ""


def most_due(rule: CatchUp, most: int) -> int:
    """How many due times must be known for a decision."""
    return (most if rule == "all" else 1) + 1


def caught_up(times: list[float], now: float, rule: CatchUp, most: int) -> list[Planned]:
    """What becomes of due times, oldest first. Of times that are missed, the newest is named."""
    late = [time for time in times if now - time > ON_TIME]
    on_time = [Planned(time=time) for time in times if now - time <= ON_TIME]
    if not late:
        return on_time
    taken: list[float] = []
    if rule == "all":
        taken = late[-most:]
    elif rule == "once" and not on_time:
        taken = late[-1:]
    missed = [time for time in late if time not in taken][-1:]
    return [
        *(Planned(time=time, reason=MISSED) for time in missed),
        *(Planned(time=time) for time in taken),
        *on_time,
    ]


class Load(Value):
    """What a job has under way: sessions, starts that wait, and starts of this day."""

    running: int = 0
    waiting: int = 0
    today: int = 0


def refusal(job: Job, load: Load, cause: Cause) -> str:
    """Why nothing is started at all; empty if it is started now or later.

    The start that a person asks for waits for others, and is not bound by the limit of the day.
    """
    if cause is not Cause.PERSON:
        if job.per_day is not None and load.today >= job.per_day:
            return DAY_LIMIT
        if load.running >= job.max_running and job.overlap == "skip":
            return STILL_RUNNING
    if load.waiting >= MOST_WAITING:
        return QUEUE_FULL
    return ""
