"""A front for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.hub.hub import Hub
from quarterdeck.journal import MemoryJournal
from support.front import Front, front


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Front]:
    """A running front."""
    worktrees = Hub(MemoryJournal(), lambda token: None).worktree_service
    async with front(tmp_path / "data", worktree_service=worktrees) as running:
        yield running
