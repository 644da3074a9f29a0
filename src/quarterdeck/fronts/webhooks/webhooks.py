"""All endpoints of a hub, and the counters of their deliveries.

The service's composition root is above, and gives the settings at the start and at each change.
Each endpoint has its own reader and its own deliveries; none waits for another.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.errors import JournalError, StaleLease, UsageError
from quarterdeck.fronts.webhooks.endpoint import MOST_WAITING, PAUSE_SECONDS, Counts, Endpoint
from quarterdeck.fronts.webhooks.outbox import Outbox
from quarterdeck.fronts.webhooks.payloads import Link
from quarterdeck.fronts.webhooks.sender import open_client
from quarterdeck.fronts.webhooks.settings import Backoff, Webhook
from quarterdeck.hub.api import HubApi
from quarterdeck.runtime.duties import Duty, alone
from quarterdeck.runtime.shared_tables import Mirror
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)


class Webhooks:
    """The front. `link` returns the address of a session's page."""

    def __init__(
        self,
        hub: HubApi,
        folder: Path,
        hooks: Sequence[Webhook],
        *,
        link: Link,
        backoff: Backoff | None = None,
        most_waiting: int = MOST_WAITING,
        mirror: Mirror | None = None,
    ) -> None:
        """`folder` is the data folder, with the outbox; `mirror` has it for several hubs."""
        self._hub = hub
        self._folder = folder
        self._link = link
        self._backoff = backoff or Backoff()
        self._most_waiting = most_waiting
        self._hooks = _check_names(hooks)
        self._counts: dict[str, Counts] = {}
        self._changed = anyio.Event()
        self._mirror = mirror

    @property
    def counts(self) -> Mapping[str, Counts]:
        """The counters of each endpoint since the hub started, by its name."""
        return self._counts

    def change(self, hooks: Sequence[Webhook]) -> None:
        """Use these endpoints from now on. Waiting payloads of an endpoint that stays are kept.

        A running attempt is cancelled and repeated. Raises `UsageError` for two endpoints of one
        name; then nothing changes.
        """
        checked = _check_names(hooks)
        if checked != self._hooks:
            self._hooks = checked
            self._changed.set()

    @asynccontextmanager
    async def run(self, duty: Duty = alone) -> AsyncIterator[None]:
        """Deliver while the block runs. The next hub delivers the rest."""
        async with background_tasks() as tasks:
            tasks.start_soon(duty, "webhooks", self._keep)
            yield

    async def _keep(self) -> None:
        """Run the endpoints, and restart them when the settings change."""
        while True:
            self._changed = anyio.Event()
            hooks = self._hooks
            self._counts = {name: self._counts.get(name, Counts()) for name in hooks}
            if not hooks and not await anyio.Path(self._folder / "webhooks.db").exists():
                await self._changed.wait()
                continue
            try:
                outbox = await anyio.to_thread.run_sync(Outbox, self._folder, self._mirror)
            except (OSError, sqlite3.Error) as error:
                log.error("webhooks are not delivered: %s: %s", self._folder, error)
                await self._changed.wait()
                continue
            try:
                await self._run(outbox, list(hooks.values()))
            except StaleLease:
                raise
            except (JournalError, sqlite3.Error) as error:
                log.error("webhooks are not delivered: %s", error)
                await anyio.sleep(PAUSE_SECONDS)
            finally:
                outbox.close()

    async def _run(self, outbox: Outbox, hooks: list[Webhook]) -> None:
        await anyio.to_thread.run_sync(outbox.keep_only, [hook.name for hook in hooks])
        async with open_client() as client, anyio.create_task_group() as tasks:
            for hook in hooks:
                endpoint = Endpoint(
                    hook,
                    self._hub,
                    outbox,
                    client,
                    link=self._link,
                    counts=self._counts[hook.name],
                    backoff=self._backoff,
                    most_waiting=self._most_waiting,
                )
                tasks.start_soon(endpoint.run)
            await self._changed.wait()
            tasks.cancel_scope.cancel()


def _check_names(hooks: Sequence[Webhook]) -> dict[str, Webhook]:
    found: dict[str, Webhook] = {}
    for hook in hooks:
        if hook.name in found:
            raise UsageError(f"webhook {hook.name}: this name is used twice")
        found[hook.name] = hook
    return found
