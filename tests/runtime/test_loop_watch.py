"""What holds the event loop up is logged, with its place."""

from __future__ import annotations

import logging
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


async def test_the_place_that_holds_the_loop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch()
    with caplog.at_level(logging.WARNING, "quarterdeck.runtime.loop_watch"):
        async with watch.running():
            hold_everybody_up(watch)
            with anyio.fail_after(SECONDS):
                await until(lambda: watch.held > 0)
    assert watch.longest >= 0.1
    assert "hold_everybody_up (test_loop_watch.py:" in caplog.text


async def test_a_loop_that_waits_is_not_held_up() -> None:
    watch = LoopWatch(held_seconds=SECONDS)
    async with watch.running():
        await anyio.sleep(0.2)
    assert watch.held == 0
