"""A hub in a process of its own, with a fake CLI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.testing.clis import RealCli
from quarterdeck.testing.model import ScriptedModel
from support.command_line import Quarterdeck
from support.forks import Forks
from support.processes import Processes
from support.served_deck import ServedDeck


@pytest.fixture
async def deck(
    tmp_path: Path,
    model: ScriptedModel,
    clis: dict[str, RealCli],
    processes: Processes,
    hubs_to_fork: Forks,
) -> AsyncIterator[ServedDeck]:
    """`quarterdeck serve`, which is not started yet."""
    command = Quarterdeck(tmp_path, model.url, clis["2.1.325"].command, processes)
    made = ServedDeck(command, processes, hubs_to_fork)
    yield made
    await made.leave()
    command.close()
