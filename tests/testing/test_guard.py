"""The guard that keeps tests from leaving processes behind."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from support.bounds import SECONDS
from support.processes import Processes, left_behind, offspring, running

pytestmark = pytest.mark.process

SLEEP = [sys.executable, "-I", "-c", "import time; time.sleep(60)"]


def test_what_a_test_leaves_running_is_found_and_killed() -> None:
    before = offspring()
    with subprocess.Popen(SLEEP) as process:
        assert left_behind(before, patience=0) == [process.pid]
        assert process.wait(SECONDS) == -9
    assert left_behind(before, patience=0) == []


def test_a_registered_process_is_ended_with_its_children() -> None:
    registry = Processes()
    before = offspring()
    # It does not end by itself when its child is gone.
    parent = f"import subprocess, time; subprocess.run({SLEEP!r}); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-I", "-c", parent]) as process:
        registry.started(process.pid)
        deadline = time.monotonic() + SECONDS
        while len(offspring() - before) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ended = registry.end_all()
        assert process.wait(5) == -9
    assert ended[-1] == process.pid
    assert len(ended) == 2
    assert not any(running(pid) for pid in ended)
    assert registry.alive() == []
