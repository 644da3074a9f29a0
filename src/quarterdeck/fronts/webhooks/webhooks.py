"""All endpoints of a hub: which there are, and what became of their deliveries.

Above is whoever composes the service, which gives the settings at the start and again when they
change. Each endpoint has its own reader and its own deliveries; none waits for another.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.webhooks.endpoint import MOST_WAITING, Counts, Endpoint
from quarterdeck.fronts.webhooks.outbox import Outbox
from quarterdeck.fronts.webhooks.payloads import Link
from quarterdeck.fronts.webhooks.sender import open_client
from quarterdeck.fronts.webhooks.settings import Backoff, Webhook
from quarterdeck.hub.api import HubApi
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)


class Webhooks:
    """The front. `link` gives the address where a person sees a session."""

    def __init__(
        self,
        hub: HubApi,
        folder: Path,
        hooks: Sequence[Webhook],
        *,
        link: Link,
        backoff: Backoff | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """`folder` is the data folder, where what is not yet delivered is kept."""
        self._hub = hub
        self._folder = folder
        self._link = link
        self._backoff = backoff or Backoff()
        self._most_waiting = most_waiting
        self._hooks = _checked(hooks)
        self._counts: dict[str, Counts] = {}
        self._changed = anyio.Event()

    @property
    def counts(self) -> Mapping[str, Counts]:
        """What became of each endpoint's deliveries since the hub started, by its name."""
        return self._counts

    def change(self, hooks: Sequence[Webhook]) -> None:
        """From now on these. What waits for one that stays goes on waiting, and goes there.

        A try that is under way is broken off and made again. Raises `UsageError` for two of one
        name; then nothing changes.
        """
        checked = _checked(hooks)
        if checked != self._hooks:
            self._hooks = checked
            self._changed.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver while the block runs. What is not delivered then is delivered by the next hub."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._keep)
            yield

    async def _keep(self) -> None:
        """Run the endpoints that are wanted, and others when others are wanted."""
        while True:
            self._changed = anyio.Event()
            hooks = self._hooks
            self._counts = {name: self._counts.get(name, Counts()) for name in hooks}
            if not hooks and not await anyio.Path(self._folder / "webhooks.db").exists():
                await self._changed.wait()
                continue
            try:
                outbox = await anyio.to_thread.run_sync(Outbox, self._folder)
            except (OSError, sqlite3.Error) as error:
                log.error("webhooks are not delivered: %s: %s", self._folder, error)
                await self._changed.wait()
                continue
            try:
                await self._run(outbox, list(hooks.values()))
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


def _checked(hooks: Sequence[Webhook]) -> dict[str, Webhook]:
    found: dict[str, Webhook] = {}
    for hook in hooks:
        if hook.name in found:
            raise UsageError(f"webhook {hook.name}: there are two of this name")
        found[hook.name] = hook
    return found
