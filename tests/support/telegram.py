"""A bot's outbox against the Bot API server for tests, with one clock for both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from quarterdeck.fronts.telegram.api import BotApi, open_bot
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.fronts.telegram.outbox import Outbox
from quarterdeck.fronts.telegram.outbox_news import Failed, Sent
from quarterdeck.fronts.telegram.outbox_store import OutboxStore
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.testing.telegram import BotApiServer
from support.bounds import SECONDS

SPEED = 50.0
"""How fast the time of these tests runs: a second of Telegram's limits is 20 ms."""


class OpenOutbox:
    """An outbox that works, and what it has told."""

    def __init__(self, api: BotApi, database: Database, clock: Clock, **options: Any) -> None:
        self.sent: list[Sent] = []
        self.failed: list[Failed] = []
        self.migrated: list[tuple[int, int]] = []
        self.outbox = Outbox(
            api,
            OutboxStore(database),
            clock,
            on_sent=self.sent.append,
            on_failed=self.failed.append,
            on_migrated=self.migrated.append,
            **options,
        )

    async def done(self) -> None:
        """Wait until nothing is left to do."""
        with anyio.fail_after(SECONDS):
            while not await self.outbox.flush(60):
                pass


@asynccontextmanager
async def open_outbox(
    server: BotApiServer, path: Path, *, clock: Clock | None = None, **options: Any
) -> AsyncIterator[OpenOutbox]:
    """An outbox whose state is in `path`; it stops when the block ends, as if the hub did."""
    database = Database(path)
    try:
        async with open_bot(server.token, base=server.url, timeout=SECONDS) as api:
            made = OpenOutbox(api, database, clock or server.clock, **options)
            async with background_tasks() as tasks:
                tasks.start_soon(made.outbox.run)
                yield made
    finally:
        database.close()
