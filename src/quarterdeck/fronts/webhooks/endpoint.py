"""One endpoint: one task reads the journal for it, another delivers.

The journal is the queue. The outbox holds payloads that are due or wait for a retry, at most
`MOST_WAITING`; when it is full the reader waits, and the journal keeps the rest. So a dead endpoint
costs a fixed amount of memory and disk, and delays nothing else. A payload that an endpoint refuses
does not delay the others: they are delivered while it waits for its retry.
"""

from __future__ import annotations

import logging
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from quarterdeck.domain.errors import JournalError, NotFound, StaleLease
from quarterdeck.fronts.webhooks.outbox import Outbox, Waiting
from quarterdeck.fronts.webhooks.payloads import Link, event_of, payload_of
from quarterdeck.fronts.webhooks.sender import Attempt, attempt
from quarterdeck.fronts.webhooks.settings import Backoff, Webhook
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.stored_events import Stored

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

MOST_WAITING = 64
SAVE_EVENTS = 5000
"""After so many skipped events the cursor is saved anyway."""
PAUSE_SECONDS = 5.0
"""After an internal failure (a full disk, an unreadable journal)."""
LONGEST_SLEEP = 60.0
"""The most to sleep at once, in case the clock was set back."""

_Answer = TypeVar("_Answer")


class Counts(Struct):
    """Counters of an endpoint's deliveries since the hub started."""

    delivered: int = 0
    failed: int = 0
    """Failed attempts."""
    given_up: int = 0
    waiting: int = 0
    seconds: float = 0.0
    """Spent in attempts."""
    last_error: str = ""


class Endpoint:
    """The tasks of one endpoint."""

    def __init__(
        self,
        hook: Webhook,
        hub: HubApi,
        outbox: Outbox,
        client: httpx2.AsyncClient,
        *,
        link: Link,
        counts: Counts,
        backoff: Backoff,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._hook = hook
        self._hub = hub
        self._outbox = outbox
        self._client = client
        self._link = link
        self._counts = counts
        self._backoff = backoff
        self._most_waiting = most_waiting
        self._chance = random.Random()  # noqa: S311 - it spreads tries, and hides nothing
        self._news = anyio.Event()
        self._room = anyio.Event()

    async def run(self) -> None:
        """Read and deliver until cancelled, or until the journal is closed."""
        while True:
            failed: list[Exception] = []
            async with anyio.create_task_group() as tasks:
                for work in (self._read, self._deliver):
                    tasks.start_soon(self._guard, work, failed, tasks.cancel_scope)
            if not failed:
                return
            # After an internal failure wait, and go on from the saved cursor.
            log.error("webhook %s: %s", self._hook.name, failed[0])
            await anyio.sleep(PAUSE_SECONDS)

    async def _guard(
        self,
        work: Callable[[], Awaitable[None]],
        failed: list[Exception],
        scope: anyio.CancelScope,
    ) -> None:
        try:
            await work()
        except StaleLease:
            raise  # another hub delivers
        except (sqlite3.Error, JournalError) as error:
            failed.append(error)
        scope.cancel()

    # --- reading ---------------------------------------------------------------------------------

    async def _read(self) -> None:
        name, epoch = self._hook.name, self._hub.epoch
        saved = await _in_thread(lambda: self._outbox.begin(name, epoch, self._hub.position))
        await self._count()
        async for batch in self._hub.follow(after=saved):
            for stored in batch:
                waiting = await self._payload_for(stored)
                if waiting is not None:
                    await self._put(stored.position, waiting)
                    saved = stored.position
            last = batch[-1].position
            if last - saved >= SAVE_EVENTS:
                await _in_thread(partial(self._outbox.move, name, epoch, last))
                saved = last

    async def _payload_for(self, stored: Stored) -> Waiting | None:
        kind = event_of(stored.event)
        hook = self._hook
        if kind is None or (hook.events and kind not in hook.events):
            return None
        try:
            view = await self._hub.session(stored.session)
        except NotFound:
            return None  # the session was deleted meanwhile
        if hook.projects and view.spec.project not in hook.projects:
            return None
        return Waiting(
            id=f"{self._hub.epoch}-{stored.position}",
            body=msgspec.json.encode(payload_of(stored, view, self._link)),
            at=stored.at / 1000,
            tries=0,
            due=time.time(),
        )

    async def _put(self, position: int, waiting: Waiting) -> None:
        while self._counts.waiting >= self._most_waiting:
            self._room = anyio.Event()
            await self._room.wait()
        hook = self._hook
        await _in_thread(lambda: self._outbox.put(hook.name, self._hub.epoch, position, waiting))
        await self._count()
        self._news.set()

    # --- delivering ------------------------------------------------------------------------------

    async def _deliver(self) -> None:
        while True:
            self._news = anyio.Event()
            waiting = await _in_thread(lambda: self._outbox.next(self._hook.name))
            wait = LONGEST_SLEEP if waiting is None else waiting.due - time.time()
            if waiting is None or wait > 0:
                with anyio.move_on_after(min(wait, LONGEST_SLEEP)):
                    await self._news.wait()
                continue
            await self._try(waiting)

    async def _try(self, waiting: Waiting) -> None:
        hook, counts = self._hook, self._counts
        found = await attempt(self._client, hook, waiting.id, waiting.body)
        counts.seconds += found.seconds
        if found.ok:
            counts.delivered += 1
        else:
            counts.failed += 1
            counts.last_error = found.error
            tries = waiting.tries + 1
            if not self._is_over(waiting, tries, found):
                due = time.time() + self._pause(tries, found)
                await _in_thread(lambda: self._outbox.reschedule(hook.name, waiting.id, tries, due))
                log.info("webhook %s: %s: %s", hook.name, waiting.id, found.error)
                return
            counts.given_up += 1
            log.warning(
                "webhook %s: %s: gave up after %d attempts: %s",
                hook.name,
                waiting.id,
                tries,
                found.error,
            )
        await _in_thread(lambda: self._outbox.remove(hook.name, waiting.id))
        await self._count()
        self._room.set()

    def _is_over(self, waiting: Waiting, tries: int, found: Attempt) -> bool:
        hook = self._hook
        old = time.time() - waiting.at >= hook.give_up_hours * 3600
        return tries >= hook.tries or old or found.gone

    def _pause(self, tries: int, found: Attempt) -> float:
        pause = self._backoff.after(tries, self._chance.random())
        return max(pause, min(found.retry_after or 0.0, self._backoff.most))

    async def _count(self) -> None:
        self._counts.waiting = await _in_thread(lambda: self._outbox.count(self._hook.name))


async def _in_thread(work: Callable[[], _Answer]) -> _Answer:
    """Run it in a thread, to its end, so that its result is always known."""
    # The thread is not cancelled: a cancelled caller continues when it has ended.
    return await anyio.to_thread.run_sync(work)
