"""A part of the front that fails is started again, with growing pauses, and the rest goes on.

Owns when a part is started again, and the entry in the log with its traceback. What can be
expected (a hub that is away, a full disk) the parts handle themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from quarterdeck.runtime.clock import Clock

log = logging.getLogger(__name__)

PAUSES = (1.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds before a part that has failed is started again."""
STEADY_SECONDS = 600.0
"""A part that has worked for so long begins with the first pause again."""


async def keep_running(
    part: str,
    run: Callable[[], Awaitable[None]],
    clock: Clock,
    on_failure: Callable[[str, Exception], None],
) -> None:
    """Run a part until it returns, whatever it raises. A cancellation ends it.

    `on_failure` hears which part has failed, and why.
    """
    failures = 0
    while True:
        began = clock.now()
        try:
            await run()
        except Exception as error:  # one part must end neither the others nor the hub
            failures = 0 if clock.now() - began > STEADY_SECONDS else failures
            pause = PAUSES[min(failures, len(PAUSES) - 1)]
            log.exception("Telegram: %s failed, and is started again in %g s", part, pause)
            on_failure(part, error)
            failures += 1
            await clock.sleep(pause)
        else:
            return
