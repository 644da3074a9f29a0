"""The local runner, for as long as the hub lives: one that dies is followed by another.

Owns when that is, and how often it is tried; `serve` stands above it and says how a runner is
started. Below it is the runner's folder, whose lock tells whether one lives there. What becomes of
the dead one's agents is not its business: the next runner ends what is left of them and tells the
hub, and they can be resumed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.runner import live_runner
from quarterdeck.runner.home import STATE
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Between attempts; each pause is twice the one before."""
STEADY_SECONDS = 60.0
"""A runner that lived for so long was well: the next pause is the first again."""
GOOD_ORDER_SECONDS = 15.0
"""Until a runner that ended in good order is missed. `quarterdeck stop` ends it before the hub."""


@asynccontextmanager
async def supervised_runner(folder: Path, start: Callable[[], object]) -> AsyncIterator[None]:
    """A runner lives in `folder` while the block runs. `start` blocks, and starts one."""
    await anyio.to_thread.run_sync(start)
    async with background_tasks() as tasks:
        tasks.start_soon(_supervise, folder, start)
        yield


async def _supervise(folder: Path, start: Callable[[], object]) -> None:
    pause, seen = FIRST_PAUSE, time.monotonic()
    began = seen
    while True:
        await anyio.sleep(LOOK_SECONDS)
        now = time.monotonic()
        if live_runner(folder) is not None:
            seen = now
            continue
        if not (folder / STATE).exists() and now - seen < GOOD_ORDER_SECONDS:
            continue
        if now - began > STEADY_SECONDS:
            pause = FIRST_PAUSE
        log.warning("the local runner is gone; another one is started in %g s", pause)
        await anyio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
        try:
            await anyio.to_thread.run_sync(start, abandon_on_cancel=True)
        except (QuarterdeckError, OSError) as error:
            log.error("the local runner could not be started: %s", error)
        began = seen = time.monotonic()
