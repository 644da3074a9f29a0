"""A front for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.front import Front, front


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Front]:
    """A running front."""
    async with front(tmp_path / "data") as running:
        yield running
