"""Tasks that run beside a block, and end with it.

A task group gives what its block raises in a group of exceptions, which nobody above expects. Here
it comes out as it is. Whoever serves, keeps or follows something while a block runs builds on this.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """A task group that is cancelled when the block ends; the block's error comes out as it is."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised below, as it is and not in a group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
