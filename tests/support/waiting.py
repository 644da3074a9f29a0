"""Wait for a condition that nothing announces; the caller bounds it with `anyio.fail_after`."""

from __future__ import annotations

from collections.abc import Callable

import anyio


async def until(holds: Callable[[], bool]) -> None:
    """Look again every hundredth of a second until `holds` says yes."""
    while not holds():  # noqa: ASYNC110  (what is waited for has no event to offer)
        await anyio.sleep(0.01)
