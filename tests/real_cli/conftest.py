"""Every test here runs once for each seat of the matrix, in a process and a home of its own.

A test that is marked `transports_differ` runs on all of them, another one on those that do not
repeat what their neighbours show. One that is marked `between` runs on the seats that it names,
too: `between("2.1.92 ws")`, or on these alone: `between("2.1.92 ws", only=True)`. The compatibility
page does not show these.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, ScriptedModel
from support.seats import MATRIX, REPEATING, Seat


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the seats of a test."""
    if "seat" in metafunc.fixturenames:
        everywhere = metafunc.definition.get_closest_marker("transports_differ") is not None
        seats = [seat for seat in MATRIX if everywhere or seat not in REPEATING]
        for mark in metafunc.definition.iter_markers("between"):
            seats = [] if mark.kwargs.get("only") else seats
            seats += [(version, transport) for version, transport in map(str.split, mark.args)]
        ids = ["-".join(seat) for seat in seats]
        metafunc.parametrize("seat", seats, ids=ids, indirect=True)


@pytest.fixture
def seat(
    request: pytest.FixtureRequest,
    extra_clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> Seat:
    """One version on one transport."""
    version, transport = request.param

    def note(capability: str, answer: str, theme: str) -> None:
        record_property("capability", (capability, version, transport, answer, theme))

    return Seat(extra_clis[version], transport, model, tmp_path, note)
