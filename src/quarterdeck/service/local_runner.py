"""The local runner, supervised while the hub runs: one that dies is replaced.

Owns when a new one is started, and the backoff; `serve` is above and says how a runner is started.
The runner's folder is below: its lock shows whether one is running. The agents of a dead runner are
not its business: the next runner ends them and reports that to the hub, and they can be resumed.
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

LOOK_SECONDS = 0.25
"""How often its lock is looked at: the ends of its agents are told only by the next one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 60.0
"""Between attempts; each pause is twice as long as the one before."""
STEADY_SECONDS = 60.0
"""After a runner has run for so long, the pause is reset."""
GOOD_ORDER_SECONDS = 15.0
"""Until a runner that exited in good order is replaced: `stop` ends it before the hub."""


@asynccontextmanager
async def supervised_runner(folder: Path, start: Callable[[], object]) -> AsyncIterator[None]:
    """Keep a runner running in `folder` while the block runs. `start` blocks, and starts one."""
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
        log.warning("the local runner has died; starting another one in %g s", pause)
        await anyio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
        try:
            await anyio.to_thread.run_sync(start, abandon_on_cancel=True)
        except (QuarterdeckError, OSError) as error:
            log.error("cannot start the local runner: %s", error)
        began = seen = time.monotonic()
