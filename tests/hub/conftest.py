"""A hub with a journal in memory, and machines in the hand of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from support.hub_machines import TestMachines, hub_with


@pytest.fixture
def journal() -> MemoryJournal:
    """What the hub writes to."""
    return MemoryJournal()


@pytest.fixture
async def deck(journal: MemoryJournal) -> AsyncIterator[tuple[Hub, TestMachines]]:
    """The hub, running, and its machines."""
    hub, machines = hub_with(journal)
    async with hub.running():
        yield hub, machines
