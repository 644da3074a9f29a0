"""Background tasks that end with a block.

A plain task group wraps an exception of its block in an exception group. Here the exception is
raised unwrapped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """A task group that is cancelled when the block ends. The block's exception is raised
    unwrapped.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised below, as it is and not in a group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
