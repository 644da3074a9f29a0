"""Which tests are left out of the measurement of coverage."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.measured import MARKS


@given(st.integers())
def test_a_property_test(number: int) -> None:
    assert number == int(str(number))
    assert sys.gettrace() is None


def test_property_tests_and_heavy_ones_are_not_measured(request: pytest.FixtureRequest) -> None:
    marks = {
        item.nodeid: item.get_closest_marker("no_cover") is not None
        for item in request.session.items
        if any(item.get_closest_marker(mark) for mark in MARKS)
    }
    assert marks
    assert [test for test, marked in marks.items() if not marked] == []


@pytest.mark.no_cover
def test_nothing_is_measured_in_what_is_left_out() -> None:
    assert sys.gettrace() is None
