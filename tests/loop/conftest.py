"""A loop on the newest real CLI and the scripted model, without a hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, ScriptedModel
from support.loops import Bench


@pytest.fixture
def bench(clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path) -> Bench:
    """A repository, a store, a model and a CLI."""
    return Bench(clis["2.1.325"], model, tmp_path)
