"""Hubs with agents that direct agents."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from quarterdeck.journal.memory import MemoryJournal
from support.agent_family import Family
from support.hub_machines import hub_with


@pytest.fixture
async def family() -> AsyncIterator[Family]:
    """A hub in memory."""
    hub, machines = hub_with(MemoryJournal())
    async with hub.run():
        yield Family(hub, machines)
