"""Which tests are left out of the measurement of coverage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers())
def test_a_property_test(number: int) -> None:
    assert number == int(str(number))


def test_property_tests_and_heavy_ones_are_not_measured(request: pytest.FixtureRequest) -> None:
    marks = {
        item.nodeid: item.get_closest_marker("no_cover") is not None
        for item in request.session.items
        if item.get_closest_marker("hypothesis") or item.get_closest_marker("heavy")
    }
    assert marks
    assert [test for test, marked in marks.items() if not marked] == []
