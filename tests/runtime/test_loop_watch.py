"""What holds the event loop up is logged, with its place."""

from __future__ import annotations

import logging
import re
import threading
import time

import anyio
import pytest

from quarterdeck.runtime.loop_watch import LoopWatch
from support.bounds import SECONDS
from support.waiting import until


def hold_everybody_up(watch: LoopWatch) -> None:
    """Keep the loop until the thread has noticed."""
    ends = time.monotonic() + SECONDS
    while not watch._place and time.monotonic() < ends:
        pass


def wait_for_somebody(watch: LoopWatch) -> None:
    """Keep the loop without work, as a system call does that waits, until the thread noticed."""
    ends = time.monotonic() + SECONDS
    while not watch._place and time.monotonic() < ends:
        threading.Event().wait(0.05)


async def test_the_place_that_holds_the_loop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch()
    with caplog.at_level(logging.WARNING, "quarterdeck.runtime.loop_watch"):
        async with watch.run():
            hold_everybody_up(watch)
            with anyio.fail_after(SECONDS):
                await until(lambda: watch.held > 0)
    assert watch.longest.seconds >= 0.1
    assert "hold_everybody_up" in watch.most_worked.place
    assert "hold_everybody_up (runtime/test_loop_watch.py:" in caplog.text


async def test_the_log_tells_work_from_waiting(caplog: pytest.LogCaptureFixture) -> None:
    worked = []
    for hold in (hold_everybody_up, wait_for_somebody):
        watch = LoopWatch()
        caplog.clear()
        with caplog.at_level(logging.WARNING, "quarterdeck.runtime.loop_watch"):
            async with watch.run():
                hold(watch)
                with anyio.fail_after(SECONDS):
                    await until(lambda: watch.held > 0)  # noqa: B023 - it is called here
        found = re.search(r"it worked (\d+) ms", caplog.text)
        assert found is not None
        worked.append(int(found[1]))
    assert worked[0] > worked[1]


async def test_a_loop_that_waits_is_not_held_up() -> None:
    watch = LoopWatch(held_seconds=SECONDS)
    async with watch.run():
        await anyio.sleep(0.2)
    assert watch.held == 0
