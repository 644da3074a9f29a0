"""The real command, in an environment of its own; and the commands around a hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from quarterdeck.testing.clis import RealCli
from quarterdeck.testing.model import ScriptedModel
from support.command_line import Quarterdeck
from support.forks import Forks
from support.processes import Processes
from support.served_deck import ServedDeck


@pytest.fixture
def quarterdeck(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli], processes: Processes
) -> Iterator[Quarterdeck]:
    """The command, with the newest real CLI and the scripted model."""
    command = Quarterdeck(tmp_path, model.url, clis["2.1.325"].command, processes)
    yield command
    command.close()


@pytest.fixture
async def deck(
    quarterdeck: Quarterdeck, processes: Processes, hubs_to_fork: Forks
) -> AsyncIterator[ServedDeck]:
    """The commands, in one process, and a hub that is not started yet."""
    made = ServedDeck(quarterdeck, processes, hubs_to_fork)
    yield made
    await made.leave()
