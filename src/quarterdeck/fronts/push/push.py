"""The front: who has subscribed, and what they are told.

Follows the journal from the moment somebody wants to know: nobody is helped by a push about a
question of yesterday, so how far it came is kept nowhere. Each subscription has a queue and a task
of its own while it has something in it; none waits for another, and the hub waits for none.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.domain.errors import JournalError, NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.push.sender import attempt, open_client
from quarterdeck.fronts.push.subscriptions import Subscription, SubscriptionStore
from quarterdeck.hub.api import HubApi
from quarterdeck.journal.stored import Stored
from quarterdeck.protocol.events import AskOpened
from quarterdeck.runtime.tasks import background_tasks

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

_Given = TypeVar("_Given")

LONGEST_TITLE, LONGEST_BODY = 100, 200
"""Letters. Even if each took the most bytes, a message stays below what every service takes."""
MOST_WAITING = 16
"""Messages for one browser whose service is slow; the oldest are dropped."""
PAUSE_SECONDS = 5.0
"""After a failure of the journal's."""


class Pace(Value):
    """The times of a delivery, in seconds."""

    timeout: float = 10.0
    """For one try."""
    pauses: tuple[float, ...] = (2.0, 10.0)
    """Before each further try; after the last a message is given up."""


class Note(Value):
    """What the browser's worker gets. It is shown as a notification."""

    title: str
    body: str
    url: str
    """Where a click leads, on the deck's own origin."""
    tag: str
    """A notification takes the place of another with its tag, also of one that the page showed."""


class Push:
    """Keeps subscriptions, and tells them of questions that wait for a person."""

    def __init__(
        self,
        hub: HubApi,
        folder: Path,
        *,
        grants: Callable[[], Collection[str]],
        contact: str,
        pace: Pace | None = None,
        loopback: bool = False,
    ) -> None:
        """`folder` is the data folder, `grants` gives the ids of the access that is valid now.

        `contact` tells push services whom to turn to: a `mailto:` or `https:` address. `loopback`
        lets a push service be on this machine: for tests.
        """
        self._hub = hub
        self._store = SubscriptionStore(folder, loopback=loopback)
        self._grants = grants
        self._contact = contact
        self._pace = pace or Pace()
        self._wanted = anyio.Event()
        self._after: int | None = None
        self._waiting: dict[str, deque[bytes]] = {}
        """What waits, by endpoint; each that is in here has a task."""

    # --- for the routes --------------------------------------------------------------------------

    async def public_key(self) -> str:
        """The key that a browser subscribes with."""
        return (await anyio.to_thread.run_sync(self._store.key)).public

    async def subscribe(self, grant: str, endpoint: str, p256dh: str, auth: str) -> None:
        """Tell a browser from now on. Raises `UsageError` and `Conflict`."""
        new = Subscription(grant=grant, endpoint=endpoint, p256dh=p256dh, auth=auth)
        await anyio.to_thread.run_sync(self._store.add, new)
        self._begin()

    async def unsubscribe(self, endpoint: str) -> None:
        """Tell it no more."""
        await anyio.to_thread.run_sync(self._store.remove, endpoint)

    # --- telling ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell while the block runs. What is not delivered then is not delivered."""
        if self._store.subscriptions:
            self._begin()
        async with background_tasks() as tasks:
            tasks.start_soon(self._keep)
            yield

    def _begin(self) -> None:
        if not self._wanted.is_set():
            self._after = self._hub.position
            self._wanted.set()

    async def _keep(self) -> None:
        await self._wanted.wait()
        async with open_client() as client, anyio.create_task_group() as tasks:
            while True:
                try:
                    async for batch in self._hub.follow(after=self._after):
                        for stored in batch:
                            if isinstance(stored.event, AskOpened):
                                await self._notify(stored, stored.event, client, tasks)
                except JournalError as error:
                    log.error("nobody is told by push for a moment: %s", error)
                    await anyio.sleep(PAUSE_SECONDS)
                    self._after = None  # what was asked meanwhile is seen by whoever looks
                else:
                    return  # the journal is closed

    async def _notify(
        self, stored: Stored, opened: AskOpened, client: httpx2.AsyncClient, tasks: TaskGroup
    ) -> None:
        grants = self._grants()
        await self._changed(self._store.keep_only, grants)
        told = [each for each in self._store.subscriptions if each.grant in grants]
        if not told:
            return
        try:
            view = await self._hub.session(stored.session)
        except NotFound:
            return  # it was deleted since
        message = msgspec.json.encode(_note(stored.session, view.name, opened))
        for to in told:
            waiting = self._waiting.get(to.endpoint)
            if waiting is None:
                self._waiting[to.endpoint] = waiting = deque(maxlen=MOST_WAITING)
                tasks.start_soon(self._deliver, to, waiting, client)
            waiting.append(message)

    async def _deliver(
        self, to: Subscription, waiting: deque[bytes], client: httpx2.AsyncClient
    ) -> None:
        """Send what waits for one browser, one after the other."""
        try:
            while waiting and to in self._store.subscriptions:
                await self._send(to, waiting.popleft(), client)
        finally:
            del self._waiting[to.endpoint]

    async def _send(self, to: Subscription, message: bytes, client: httpx2.AsyncClient) -> None:
        try:
            key = await anyio.to_thread.run_sync(self._store.key)
        except OSError as error:
            log.error("nobody is told by push: the key cannot be read: %s", error)
            return
        pace, error_ = self._pace, ""
        for pause in (*pace.pauses, None):
            found = await attempt(
                client, key, to, message, contact=self._contact, seconds=pace.timeout
            )
            if found.ok:
                return
            if found.gone:
                await self._changed(self._store.remove, to.endpoint)
                return
            error_ = found.error
            if pause is not None:
                await anyio.sleep(pause)
        log.warning("a push by %s is given up: %s", to.origin, error_)

    async def _changed(self, change: Callable[[_Given], None], given: _Given) -> None:
        """Change what is kept. That a disk is full ends no delivery."""
        try:
            await anyio.to_thread.run_sync(change, given)
        except OSError as error:
            log.error("subscriptions of push cannot be written: %s", error)


def _note(session: str, name: str, opened: AskOpened) -> Note:
    said = f"{opened.tool}: {opened.title}" if opened.title else opened.tool
    return Note(
        title=_cut(f"{name or 'An agent'} waits for you", LONGEST_TITLE),
        body=_cut(said, LONGEST_BODY),
        url=f"/s/{quote(session, safe='')}",
        tag=opened.ask,
    )


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
