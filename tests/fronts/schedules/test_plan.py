"""Planned times: cron expressions, intervals and single times, in zones whose clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.schedules.plan import due_between, next_after, plan_of
from quarterdeck.protocol.schedules import Schedule
from support.examples import examples

BERLIN = "Europe/Berlin"
"""In 2026 the hour after 02:00 is skipped on 29 March, and repeated on 25 October."""


def schedule(zone: str = BERLIN, **when: Any) -> Schedule:
    return Schedule(name="one", prompt="go", directory="/work", timezone=zone, **when)


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def iso(moment: float | None) -> str:
    return "" if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()[:16]


@pytest.mark.parametrize(
    ("cron", "zone", "after", "times"),
    [
        ("0 9 * * 1-5", "UTC", "2026-11-13T10:00Z", ["2026-11-16T09:00", "2026-11-17T09:00"]),
        ("0 9 * * *", "Asia/Tokyo", "2026-11-13T10:00Z", ["2026-11-14T00:00", "2026-11-15T00:00"]),
        ("0 9 * * *", "Asia/Kolkata", "2026-11-13T10:00Z", ["2026-11-14T03:30"]),
        ("0 9 * * *", BERLIN, "2026-03-28T00:00Z", ["2026-03-28T08:00", "2026-03-29T07:00"]),
        # The skipped hour: a fixed time runs when the hour is over, and only once.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("0,30 2 * * *", BERLIN, "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:00"]),
        # The repeated hour: a fixed time runs once, the first time.
        ("30 2 * * *", BERLIN, "2026-10-24T12:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN, "2026-10-25T01:10Z", ["2026-10-26T01:30"]),
        # Jobs of every hour follow the clock.
        (
            "30 * * * *",
            BERLIN,
            "2026-10-24T23:40Z",
            ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"],
        ),
        ("30 * * * *", BERLIN, "2026-03-29T00:00Z", ["2026-03-29T00:30", "2026-03-29T01:30"]),
    ],
)
def test_cron_expressions_are_meant_in_their_zone(
    cron: str, zone: str, after: str, times: list[str]
) -> None:
    plan = plan_of(schedule(zone, cron=cron))
    found: list[str] = []
    moment: float | None = at(after)
    for _ in times:
        assert moment is not None
        moment = next_after(plan, moment, 0.0)
        found.append(iso(moment))
    assert found == times
    assert moment is not None
    assert [iso(each) for each in due_between(plan, at(after), moment, 0.0, 50)] == times


def test_a_time_of_the_first_pass_is_found_in_the_second_one() -> None:
    plan = plan_of(schedule(cron="30 2 * * *"))
    # At 02:10 for the second time, the 02:30 of the first time is over.
    found = due_between(plan, at("2026-10-25T00:00Z"), at("2026-10-25T01:10Z"), 0.0, 10)
    assert [iso(each) for each in found] == ["2026-10-25T00:30"]


@settings(max_examples=examples(150), deadline=None)
@given(
    cron=st.sampled_from(
        ["30 2 * * *", "*/20 * * * *", "0 */5 * * *", "15 1,2,3 * * 0", "5 0 1 * *"]
    ),
    start=st.datetimes(datetime(2026, 3, 27), datetime(2026, 10, 27)),
    hours=st.floats(0.1, 100),
)
def test_looking_back_finds_what_looking_ahead_had_said(
    cron: str, start: datetime, hours: float
) -> None:
    plan = plan_of(schedule(cron=cron))
    after = start.replace(tzinfo=UTC).timestamp()
    until = after + hours * 3600
    ahead: list[float] = []
    moment = next_after(plan, after, 0.0)
    while moment is not None and moment <= until:
        ahead.append(moment)
        moment = next_after(plan, moment, 0.0)
    assert due_between(plan, after, until, 0.0, 1000) == ahead
    assert due_between(plan, after, until, 0.0, 3) == ahead[-3:]


def test_a_year_of_missed_minutes_costs_as_much_as_an_hour_of_them() -> None:
    plan = plan_of(schedule(cron="* * * * *"))
    until = at("2026-11-17T12:00:30Z")
    found = due_between(plan, until - 366 * 86400, until, 0.0, 2)
    assert [iso(each) for each in found] == ["2026-11-17T11:59", "2026-11-17T12:00"]


def test_an_interval_is_counted_from_its_anchor_and_knows_no_clocks() -> None:
    plan = plan_of(schedule(every="6h"))
    anchor = at("2026-03-28T22:00Z")
    assert iso(next_after(plan, anchor, anchor)) == "2026-03-29T04:00"
    found = due_between(plan, anchor, anchor + 86400, anchor, 10)
    assert [each - anchor for each in found] == [6 * 3600.0 * n for n in range(1, 5)]
    assert due_between(plan, anchor, anchor + 86400, anchor, 1) == [anchor + 86400]
    # A clock before the anchor gives nothing but the first time.
    assert next_after(plan, anchor - 86400, anchor) == anchor + 6 * 3600
    assert due_between(plan, anchor - 86400, anchor - 3600, anchor, 10) == []


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("2026-12-24T18:00", BERLIN, "2026-12-24T17:00"),
        ("2026-07-24T18:00", BERLIN, "2026-07-24T16:00"),
        ("2026-07-24T18:00-05:00", BERLIN, "2026-07-24T23:00"),
        ("2026-10-25T02:30", BERLIN, "2026-10-25T00:30"),
    ],
)
def test_a_single_time_is_in_the_zone_or_has_an_offset(text: str, zone: str, utc: str) -> None:
    plan = plan_of(schedule(zone, at=text))
    moment = at(utc + "Z")
    assert next_after(plan, moment - 1, 0.0) == moment
    assert next_after(plan, moment, 0.0) is None
    assert due_between(plan, moment - 1, moment, 0.0, 5) == [moment]
    assert due_between(plan, moment, moment + 99, 0.0, 5) == []


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ({"cron": "61 * * * *"}, "cron: not a cron expression"),
        ({"cron": "* * * *"}, "cron: five fields"),
        ({"cron": "* * * * * *"}, "cron: five fields"),
        ({"cron": "@daily"}, "cron: five fields"),
        ({"cron": "0 0 31 2 *"}, "cron: not a cron expression"),
        ({"cron": "0 0 */20 * 1L"}, "cron: it has no time within"),
        ({"every": "30s"}, "every: must be from 1m"),
        ({"every": "0m"}, "every: must be from 1m"),
        ({"every": "999d"}, "every: must be from 1m"),
        ({"every": "-5m"}, "every: an interval"),
        ({"every": "5"}, "every: an interval"),
        ({"every": "٥m"}, "every: an interval"),
        ({"at": "tomorrow"}, "at: a time in ISO 8601"),
        ({"at": "2026-03-29T02:30"}, "at: this time does not exist"),
        ({"at": "0001-01-01T00:00+14:00"}, "at: the time is too far away"),
        ({"at": "9999-12-31T23:59"}, "at: the time is too far away"),
    ],
)
def test_what_is_no_time_is_refused_by_the_name_of_its_member(
    when: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        plan_of(schedule(**when))
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "/etc/passwd", "Europe", "x\0y"])
def test_a_zone_that_there_is_not_is_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="timezone: there is no time zone"):
        plan_of(schedule(zone, every="1h"))


@pytest.mark.parametrize("when", [{}, {"every": "1h", "cron": "* * * * *"}])
def test_a_schedule_has_one_kind_of_times(when: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="one of cron, every and at"):
        schedule(**when)


def test_the_newest_interval_is_exact_after_years() -> None:
    plan = plan_of(schedule(every="7m"))
    anchor = at("2026-01-01T00:00Z")
    later = anchor + timedelta(days=3650).total_seconds()
    (newest,) = due_between(plan, anchor, later, anchor, 1)
    assert later - 420 < newest <= later
    assert (newest - anchor) % 420 == 0
