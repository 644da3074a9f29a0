"""The libraries of the bot are loaded in a thread: the hub's event loop serves others meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.bounds import SECONDS

pytestmark = pytest.mark.process

OF_THE_BOT = (
    "quarterdeck.fronts.telegram",
    "quarterdeck.client",
    "websockets",
    "httpx2",
    "httpcore2",
    "telegramify_markdown",
    "encodings.utf",
)


def test_the_event_loop_loads_nothing_of_the_bot_from_its_start_to_an_answer(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.telegram_imports", str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        timeout=2 * SECONDS,
        check=True,
    )
    names = json.loads(done.stdout)
    assert names, "the hub itself loads some"
    assert [name for name in names if name.startswith(OF_THE_BOT)] == []
