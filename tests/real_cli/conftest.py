"""Every test here runs once for each seat of the matrix, in a process and a home of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, ScriptedModel
from support.seats import MATRIX, Seat


@pytest.fixture(params=[pytest.param(seat, id="-".join(seat)) for seat in MATRIX])
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
