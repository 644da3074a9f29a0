"""Editors of other makers, and what they say to `quarterdeck acp`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.acp_wire import Wire


@pytest.fixture
def wire(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Wire]:
    """What goes over the wire; at the end, what the test says that it shows has been there."""
    made = Wire(tmp_path / "acp-wire.txt")
    yield made
    made.check(request.function)
