"""The token of this user's programs, kept valid by the hub.

`quarterdeck.client` reads it and cannot make one; a hub may run for longer than it is valid.
"""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.errors import Forbidden
from quarterdeck.service.local_hub import own_token

CHECK_SECONDS = 86400.0

log = logging.getLogger(__name__)


async def have_own_token(home: Path) -> None:
    """Have a valid token in the data folder, before others find the hub."""
    try:
        await anyio.to_thread.run_sync(own_token, home)
    except (Forbidden, OSError) as error:
        log.warning("there is no token for programs on this machine: %s", error)


async def keep_own_token(home: Path) -> None:
    """Have one, until it is cancelled."""
    while True:
        await anyio.sleep(CHECK_SECONDS)
        await have_own_token(home)
