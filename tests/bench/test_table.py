"""The table of the benchmarks: what is a ratio, what is reached, and what fails a run."""

from __future__ import annotations

import pytest
from bench.soak import slope
from bench.table import (
    Bar,
    Kind,
    Measure,
    Peer,
    Sample,
    cells,
    exit_code,
    markdown,
    number,
    paired,
    plain,
)


def measure(
    *, ratio: tuple[float, ...] | None = None, ours: tuple[float, ...] = (1.0,), bar: Bar
) -> Measure:
    sample = None if ratio is None else Sample(ratio)
    return Measure(row=1, work="work", unit="s", ours=Sample(ours), ratio=sample, bar=bar)


def test_a_ratio_is_made_within_a_round() -> None:
    assert paired([10.0, 40.0], [5.0, 10.0]).values == (2.0, 4.0)


@pytest.mark.parametrize(
    ("bar", "ratio", "reached"),
    [
        (Bar(Kind.RATIO_AT_LEAST, 8), (7.0, 8.5, 9.0), True),
        (Bar(Kind.RATIO_AT_LEAST, 8), (7.0, 7.5, 9.0), False),
        (Bar(Kind.RATIO_AT_MOST, 2), (1.0, 1.9, 5.0), True),
        (Bar(Kind.RATIO_AT_MOST, 2), (1.0, 2.1, 5.0), False),
    ],
)
def test_the_median_decides_whether_a_bar_is_reached(
    bar: Bar, ratio: tuple[float, ...], reached: bool
) -> None:
    made = measure(ratio=ratio, bar=bar)
    assert made.reached is reached
    assert exit_code([made]) == int(not reached)


def test_a_bar_in_seconds_is_told_and_fails_nothing() -> None:
    slow = measure(ours=(3.0,), bar=Bar(Kind.AT_MOST, 1.5))
    assert slow.reached is False
    assert exit_code([slow]) == 0
    assert "MISSED" in plain([slow])


def test_a_bar_for_a_ratio_that_was_not_measured_is_not_reached() -> None:
    assert exit_code([measure(bar=Bar(Kind.RATIO_AT_LEAST, 2))]) == 1


def test_without_a_bar_nothing_is_judged() -> None:
    made = measure(bar=Bar())
    assert made.reached is None
    assert cells(made)[-2:] == ("", "")


def test_a_row_shows_ours_the_peer_the_limit_and_the_ratio() -> None:
    made = Measure(
        row=5,
        work="fan-out",
        unit="deliveries/s",
        ours=Sample((100_000.0, 300_000.0, 200_000.0)),
        peer=Peer("another", Sample((50_000.0, 60_000.0, 40_000.0))),
        limit=Peer("a file", Sample((1e6,))),
        ratio=Sample((2.0, 5.0, 5.0)),
        bar=Bar(Kind.RATIO_AT_LEAST, 3),
        note="why",
    )
    page = markdown([made])
    assert "| 5 | fan-out | 200,000 deliveries/s (100,000 to 300,000) | another: 50,000 " in page
    assert "| 5.00 × (2.00 to 5.00) | ratio at least 3.00 × | reached |" in page
    assert page.endswith("- 5, fan-out: why")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123, "0.0123"), (1.0, "1.00"), (12.34, "12.3"), (456.7, "457"), (123_456, "123,000")],
)
def test_a_number_has_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("at", "values", "found"),
    [([], [], 0.0), ([1.0], [5.0], 0.0), ([0, 1, 2], [1, 3, 5], 2.0), ([0, 1, 2], [4, 4, 4], 0.0)],
)
def test_the_slope_of_a_soak_is_that_of_the_nearest_line(
    at: list[float], values: list[float], found: float
) -> None:
    assert slope(at, values) == pytest.approx(found)
