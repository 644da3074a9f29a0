"""The commands around a hub, which a test starts when it needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.command_line import Quarterdeck
from support.processes import Processes
from support.served_deck import ServedDeck


@pytest.fixture
def deck(quarterdeck: Quarterdeck, processes: Processes) -> Iterator[ServedDeck]:
    """The commands, and a hub that is not started yet."""
    made = ServedDeck(quarterdeck, processes)
    yield made
    made.adopt()
