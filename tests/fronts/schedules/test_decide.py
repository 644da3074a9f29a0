"""Decisions about times that are late, and about starts beyond a limit."""

from __future__ import annotations

import pytest

from quarterdeck.fronts.schedules.decide import (
    DAY_LIMIT,
    MISSED,
    MOST_WAITING,
    QUEUE_FULL,
    STILL_RUNNING,
    Load,
    caught_up,
    refusal,
)
from quarterdeck.protocol.schedules import CatchUp, Cause, Overlap, Schedule

NOW = 1_800_000_000.0
H = 3600.0


@pytest.mark.parametrize(
    ("rule", "ago", "taken", "missed"),
    [
        ("skip", [], [], []),
        ("skip", [5], [5], []),
        ("skip", [3 * H, 2 * H, H], [], [H]),
        ("skip", [2 * H, H, 1], [1], [H]),
        ("once", [3 * H, 2 * H, H], [H], [2 * H]),
        ("once", [H], [H], []),
        ("once", [2 * H, H, 1], [1], [H]),
        ("all", [3 * H, 2 * H, H], [2 * H, H], [3 * H]),
        ("all", [2 * H, H, 1], [2 * H, H, 1], []),
        ("once", [80, 20], [80, 20], []),
    ],
)
def test_late_times_are_caught_up_by_the_rule(
    rule: CatchUp, ago: list[float], taken: list[float], missed: list[float]
) -> None:
    found = caught_up([NOW - each for each in ago], NOW, rule, 2)
    assert [NOW - each.time for each in found if not each.reason] == taken
    assert [(NOW - each.time, each.reason) for each in found if each.reason] == [
        (each, MISSED) for each in missed
    ]


@pytest.mark.parametrize(
    ("overlap", "load", "cause", "reason"),
    [
        ("skip", Load(), Cause.TIME, ""),
        ("skip", Load(running=1), Cause.TIME, STILL_RUNNING),
        ("wait", Load(running=1), Cause.TIME, ""),
        ("skip", Load(running=1), Cause.PERSON, ""),
        ("skip", Load(running=1), Cause.REQUEST, STILL_RUNNING),
        ("wait", Load(running=1), Cause.REQUEST, ""),
        ("wait", Load(waiting=MOST_WAITING), Cause.REQUEST, QUEUE_FULL),
        ("wait", Load(today=3), Cause.TIME, DAY_LIMIT),
        ("wait", Load(today=3), Cause.REQUEST, DAY_LIMIT),
        ("wait", Load(today=3), Cause.PERSON, ""),
        ("wait", Load(today=2), Cause.TIME, ""),
    ],
)
def test_a_start_beyond_a_limit_is_refused(
    overlap: Overlap, load: Load, cause: Cause, reason: str
) -> None:
    job = Schedule(
        name="a", prompt="p", directory="/w", every="1h", overlap=overlap, per_day=3, max_running=1
    )
    assert refusal(job, load, cause) == reason
