"""The commands around a hub, which a test starts when it needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.command_line import Quarterdeck
from support.processes import Processes
from support.served_deck import ServedDeck


@pytest.fixture
async def deck(quarterdeck: Quarterdeck, processes: Processes) -> AsyncIterator[ServedDeck]:
    """The commands, and a hub that is not started yet."""
    made = ServedDeck(quarterdeck, processes)
    yield made
    await made.leave()
