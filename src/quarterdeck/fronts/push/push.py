"""The front: the subscriptions, and their notifications.

Which events are told, and how, is in `notes`; what a notification may answer, in `answers`.

Follows the journal from its start: a push about yesterday's question helps nobody, so no cursor is
stored. Each subscription has its own queue, and a task while the queue is not empty; none waits for
another, and the hub waits for none.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError, NotFound, StaleLease
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.push.answers import AnswerTokens, can_deny, shown_whole
from quarterdeck.fronts.push.notes import Note, note_of
from quarterdeck.fronts.push.sender import attempt, open_client
from quarterdeck.fronts.push.subscriptions import PushKind, Subscription, SubscriptionStore
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.events import AskAnswered, AskOpened, AskWithdrawn, Event
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.runtime.duties import PLACE_SECONDS, Duty, SharedPlace, alone
from quarterdeck.runtime.tasks import background_tasks

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

_Argument = TypeVar("_Argument")

MOST_WAITING = 16
"""Messages for one browser whose service is slow; the oldest are dropped."""
MOST_MISSED = 20_000
"""Events that a hub looks at again which takes over from another one."""
PAUSE_SECONDS = 5.0
"""After a failure of the journal."""


class Pace(Value):
    """The times of a delivery, in seconds."""

    timeout: float = 10.0
    """For one attempt."""
    pauses: tuple[float, ...] = (2.0, 10.0)
    """Before each retry; after the last one a message is given up."""


class Push:
    """Keeps subscriptions, and notifies them: of questions that wait for a person, and of what else
    each browser wants to be told.
    """

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
        """`folder` is the data folder, `grants` returns the ids of all valid grants.

        `contact` is the hub's contact for push services: a `mailto:` or `https:` address.
        `loopback` allows a push service on this machine, for tests.
        """
        self._hub = hub
        self._store = self.store = SubscriptionStore(folder, loopback=loopback)
        self._loopback = loopback
        self._grants = grants
        self._contact = contact
        self._pace = pace or Pace()
        self._wanted = anyio.Event()
        self._answers = AnswerTokens()
        self._after: int | None = None
        self._recorded = 0.0
        self._waiting: dict[str, deque[bytes]] = {}
        """Queued notifications, by endpoint; each endpoint in it has a task."""

    # --- for the routes --------------------------------------------------------------------------

    async def public_key(self) -> str:
        """The public key that a browser subscribes with."""
        return (await anyio.to_thread.run_sync(self._store.key)).public

    async def subscribe(
        self,
        grant: str,
        endpoint: str,
        p256dh: str,
        auth: str,
        *,
        kinds: Collection[str] = (PushKind.QUESTION,),
        buttons: bool = False,
    ) -> None:
        """Add a subscription. Raises `UsageError` and `Conflict`."""
        new = Subscription(
            grant=grant,
            endpoint=endpoint,
            p256dh=p256dh,
            auth=auth,
            kinds=tuple(kind for kind in PushKind if kind in set(kinds)),
            buttons=buttons,
        )
        await anyio.to_thread.run_sync(self._store.add, new)
        self._begin()

    async def unsubscribe(self, endpoint: str) -> None:
        """Remove a subscription."""
        await anyio.to_thread.run_sync(self._store.remove, endpoint)

    async def redeem(
        self, token: str, grants: Collection[str], *, allow: bool
    ) -> tuple[str, str] | None:
        """The login and the question that a notification's token is for. It works once."""
        secret = await anyio.to_thread.run_sync(self._store.secret)
        return self._answers.redeem(secret, token, grants, allow=allow)

    # --- telling ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def run(
        self, duty: Duty = alone, place: SharedPlace | None = None
    ) -> AsyncIterator[None]:
        """Send notifications while the block runs. Undelivered ones are dropped.

        `place`: how far all hubs together are, where one sends for all.
        """
        if self._store.subscriptions:
            self._begin()

        async def take_turn() -> None:
            if place is not None:  # another hub has sent what came before
                now, after = self._hub.position, await place.load()
                self._after = now if after is None else max(after, now - MOST_MISSED)
                self._wanted.set()
            await self._keep(place)

        async with background_tasks() as tasks:
            tasks.start_soon(duty, "push", take_turn)
            yield

    def _begin(self) -> None:
        if not self._wanted.is_set():
            self._after = self._hub.position
            self._wanted.set()

    async def _keep(self, place: SharedPlace | None) -> None:
        await self._wanted.wait()
        async with open_client() as client, anyio.create_task_group() as tasks:
            while True:
                try:
                    async for batch in self._hub.follow(after=self._after):
                        if place is not None:
                            await self._record(place, batch)
                        for stored in batch:
                            if isinstance(stored.event, AskAnswered | AskWithdrawn):
                                self._answers.forget_ask(stored.event.ask)
                            await self._notify(stored, client, tasks)
                except StaleLease:
                    raise  # another hub sends them
                except JournalError as error:
                    log.error("push notifications are paused: %s", error)
                    await anyio.sleep(PAUSE_SECONDS)
                    self._after = None  # questions of that time are still on the pages
                else:
                    return  # the journal is closed

    async def _record(self, place: SharedPlace, batch: list[Stored]) -> None:
        """Tell how far this hub is, before it sends anything: a hub that stood still sends nothing.

        Events that nobody is told of are recorded now and then.
        """
        any_note = any(note_of(each.session, "", each.event) is not None for each in batch)
        if any_note or anyio.current_time() - self._recorded > PLACE_SECONDS:
            self._recorded = anyio.current_time()
            await place.save(batch[-1].position)

    async def _notify(self, stored: Stored, client: httpx2.AsyncClient, tasks: TaskGroup) -> None:
        found = note_of(stored.session, "", stored.event)
        if found is None:
            return
        kind, _ = found
        grants = self._grants()
        await self._change(self._store.keep_only, grants)
        subscriptions = [
            each
            for each in self._store.subscriptions
            if each.grant in grants and kind in each.kinds
        ]
        if not subscriptions:
            return
        try:
            view = await self._hub.session(stored.session)
        except NotFound:
            return  # the session was deleted meanwhile
        named = note_of(stored.session, view.name, stored.event)
        assert named is not None
        if isinstance(stored.event, AskOpened) and stored.event.ask not in view.asks:
            return  # it was answered before it could be told
        secret = await anyio.to_thread.run_sync(self._store.secret)
        for to in subscriptions:
            note = self._with_answers(named[1], to, stored.event, secret)
            message = msgspec.json.encode(note)
            waiting = self._waiting.get(to.endpoint)
            if waiting is None:
                self._waiting[to.endpoint] = waiting = deque(maxlen=MOST_WAITING)
                tasks.start_soon(self._deliver, to, waiting, client)
            waiting.append(message)

    def _with_answers(self, note: Note, to: Subscription, event: Event, secret: bytes) -> Note:
        """The note, with what the browser needs to answer it, if the person wants that."""
        if not to.buttons or not isinstance(event, AskOpened) or not can_deny(event):
            return note
        command = shown_whole(event)
        token = self._answers.issue(secret, to.grant, event.ask, allow=command is not None)
        if command is None:
            return replace(note, answer=token)
        # What is allowed is what is read: the command itself, and not a description of it.
        return replace(note, answer=token, allow=True, body=f"{event.tool}: {command}")

    async def _deliver(
        self, to: Subscription, waiting: deque[bytes], client: httpx2.AsyncClient
    ) -> None:
        """Send the queue of one browser, in order."""
        try:
            while waiting and to in self._store.subscriptions:
                await self._send(to, waiting.popleft(), client)
        finally:
            del self._waiting[to.endpoint]

    async def _send(self, to: Subscription, message: bytes, client: httpx2.AsyncClient) -> None:
        try:
            key = await anyio.to_thread.run_sync(self._store.key)
        except OSError as error:
            log.error("push notifications are not sent: cannot read the key: %s", error)
            return
        pace, error_ = self._pace, ""
        for pause in (*pace.pauses, None):
            found = await attempt(
                client,
                key,
                to,
                message,
                contact=self._contact,
                seconds=pace.timeout,
                loopback=self._loopback,
            )
            if found.ok:
                return
            if found.gone:
                await self._change(self._store.remove, to.endpoint)
                return
            error_ = found.error
            if pause is not None:
                await anyio.sleep(pause)
        log.warning("gave up a push by %s: %s", to.origin, error_)

    async def _change(self, change: Callable[[_Argument], None], argument: _Argument) -> None:
        """Change the stored subscriptions. A full disk does not end deliveries."""
        try:
            await anyio.to_thread.run_sync(change, argument)
        except OSError as error:
            log.error("cannot write the push subscriptions: %s", error)
