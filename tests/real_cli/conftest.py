"""Every test here runs once for each seat of the matrix, in a process and a home of its own.

A test that is marked `transports_differ` runs on all of them, another one on those that do not
repeat what their neighbours show.
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
        ids = ["-".join(seat) for seat in seats]
        metafunc.parametrize("seat", seats, ids=ids, indirect=True)


@pytest.fixture
def seat(
    request: pytest.FixtureRequest,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> Seat:
    """One version on one transport."""
    version, transport = request.param

    def note(capability: str, answer: str, theme: str) -> None:
        record_property("capability", (capability, version, transport, answer, theme))

    return Seat(clis[version], transport, model, tmp_path, note)
