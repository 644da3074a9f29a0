"""The real command, in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.testing.clis import RealCli
from quarterdeck.testing.model import ScriptedModel
from support.command_line import Quarterdeck
from support.processes import Processes


@pytest.fixture
def quarterdeck(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli], processes: Processes
) -> Iterator[Quarterdeck]:
    """The command, with the newest real CLI and the scripted model."""
    command = Quarterdeck(tmp_path, model.url, clis["2.1.325"].command, processes)
    yield command
    command.close()
