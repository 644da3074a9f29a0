"""Updates: from Telegram into the inbox, and from the inbox to those who do them.

Updates of strangers are dropped, with one line in the log for each. All others are stored before
Telegram hears that they came. Those of one place are done in their order; a place that is slow
holds up no other. A press on a button is answered at once, whatever else is being done.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.domain.errors import LinkError
from quarterdeck.fronts.telegram.api import POLL_SECONDS, BotApiError, read_update
from quarterdeck.fronts.telegram.inbox import Waiting
from quarterdeck.fronts.telegram.jobs import Services
from quarterdeck.fronts.telegram.preload import load_talk
from quarterdeck.fronts.telegram.types import Message, Update
from quarterdeck.fronts.telegram.updates import job_of

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds between attempts while Telegram, or the hub, does not answer."""
OFFSET = "offset"
BOT = "bot"
"""The stored name of the bot whose updates are counted."""
FRESH_SECONDS = 6 * 86400.0
"""After a week without updates Telegram begins with other numbers. Before that we ask for all that
are left, without a number."""
MOST_STRANGERS = 1000
"""Strangers that are remembered, so that each has one line in the log."""


class Bot:
    """Receives updates and has them done: `begin` first, then `poll`, or `receive` by a webhook."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._messenger = services.messenger
        self._lanes: dict[str, deque[int]] = {}
        self._tasks: TaskGroup | None = None
        self._strangers: set[int] = set()
        self._doing: set[int] = set()
        self._loaded = False

    # --- receiving -----------------------------------------------------------------------------

    def begin(self, tasks: TaskGroup) -> None:
        """Do what is left from before, and from now on what comes."""
        self._tasks = tasks
        self._know_bot(str(self._services.me.id).encode())
        self.wake()

    def _know_bot(self, bot: bytes) -> None:
        """Forget the numbers of updates if they were those of another bot."""
        state = self._messenger.state
        if (known := state.meta(BOT)) == bot:
            return
        with self._messenger.database.transaction():
            if known is not None:
                log.warning(
                    "the token is that of another bot: its updates are counted from the start"
                )
                self._messenger.inbox.forget()
                state.unset_meta(OFFSET)
            state.set_meta(BOT, bot)

    async def load(self) -> None:
        """Load what updates need, in a thread. A bot to which nobody talks does without it."""
        if not self._loaded:
            await anyio.to_thread.run_sync(load_talk)
            self._loaded = True

    async def poll(self) -> None:
        """Ask Telegram for updates, until cancelled."""
        failures = 0
        api, health = self._services.api, self._services.health
        while True:
            try:
                # The first call does not wait: whether it works is known at once, for `doctor`.
                seconds = POLL_SECONDS if health.polled or failures else 0
                updates = await api.get_updates(self._offset(), timeout=seconds)
                if updates:
                    await self.load()
                self.receive(updates)
                if failures:
                    log.info("Telegram answers again")
                failures = 0
                health.note_poll(self._messenger.state, self._messenger.clock.now())
                continue
            except BotApiError as error:
                if failures == 0 or health.poll_failure != str(error):
                    log.warning("no updates from Telegram: %s", error)
                with suppress(sqlite3.Error):
                    health.note_poll(self._messenger.state, self._messenger.clock.now(), str(error))
                pause = PAUSES[min(failures, len(PAUSES) - 1)]
                pause = max(pause, error.retry_after or 0.0)
            except sqlite3.Error as error:
                log.error("updates cannot be stored: %s", error)
                health.poll_failure = str(error)
                pause = PAUSES[-1]
            failures += 1
            await self._messenger.clock.sleep(pause)

    def _offset(self) -> int | None:
        stored = self._messenger.state.meta(OFFSET)
        if stored is None:
            return None
        number, at = msgspec.json.decode(stored, type=tuple[int, float])
        return None if self._messenger.clock.now() - at > FRESH_SECONDS else number

    def receive(self, updates: list[Update]) -> None:
        """Store updates, and have those that are new done. Raises `sqlite3.Error`."""
        now = self._messenger.clock.now()
        rows = [
            (update.update_id, lane, msgspec.json.encode(update))
            for update in updates
            if (lane := self._lane(update)) is not None
        ]
        new = set(self._messenger.inbox.receive(rows, now)) if rows else set()
        if updates:
            number = max(update.update_id for update in updates) + 1
            self._messenger.state.set_meta(OFFSET, msgspec.json.encode((number, now)))
        for update in updates:
            if update.update_id in new:
                self._acknowledge(update)
        for update_id, lane, _ in rows:
            if update_id in new:
                self._enqueue(update_id, lane)

    def store(self, update: Update) -> None:
        """Store an update that does not come from Telegram. `wake` then has it done."""
        lane = self._lane(update)
        if lane is not None:
            body, now = msgspec.json.encode(update), self._messenger.clock.now()
            self._messenger.inbox.receive([(update.update_id, lane, body)], now)

    def wake(self) -> None:
        """Have everything done that is stored and not under way."""
        under_way = {number for lane in self._lanes.values() for number in lane}
        for row in self._messenger.inbox.waiting_updates():
            if row.update_id not in under_way and row.update_id not in self._doing:
                self._enqueue(row.update_id, row.lane)

    def _lane(self, update: Update) -> str | None:
        """The lane of an update; None for one that is not for us."""
        job = job_of(self._services, update)
        if job is None:
            return None
        message = update.message or update.edited_message
        if message is not None and message.sender_chat is not None:
            return None  # a channel, or an administrator who hides who they are
        if job.user not in self._messenger.options.users:
            self._turn_away(job.user)
            return None
        if message is not None:
            self._messenger.outbox.saw(message.chat.id, message.message_id)
        press = update.callback_query is not None or update.stopped_message_generation is not None
        return f"{job.place.key}:press" if press else job.place.key

    def _turn_away(self, user: int) -> None:
        if user not in self._strangers and len(self._strangers) < MOST_STRANGERS:
            self._strangers.add(user)
            log.warning("Telegram user %d is not allowed, and gets no answer", user)

    # --- doing ---------------------------------------------------------------------------------

    def _acknowledge(self, update: Update) -> None:
        query = update.callback_query
        if query is None or query.message is None or self._tasks is None:
            return
        from quarterdeck.fronts.telegram.talk import toast_of

        try:
            toast = toast_of(self._services, query.message.chat.id, query.data)
        except Exception:  # whatever a question contains, updates must be received
            log.exception("the answer to a press could not be made")
            return
        if toast is not None:
            self._tasks.start_soon(self._answer, query.id, toast)

    async def _answer(self, query: str, toast: str) -> None:
        try:
            await self._services.api.answer_callback_query(query, toast)
        except BotApiError as error:
            log.debug("a press could not be answered: %s", error)

    def _enqueue(self, update_id: int, lane: str) -> None:
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = deque([update_id])
            assert self._tasks is not None
            self._tasks.start_soon(self._work, lane)
        else:
            waiting.append(update_id)

    async def _work(self, lane: str) -> None:
        """Do the updates of a lane, one after the other."""
        waiting = self._lanes[lane]
        try:
            while waiting:
                number = waiting.popleft()
                self._doing.add(number)
                try:
                    await self._one(number)
                except Exception:  # one that cannot be done must not hold up all that follow it
                    log.exception("update %d could not be done", number)
                finally:
                    self._doing.discard(number)
        finally:
            del self._lanes[lane]

    async def _one(self, number: int) -> None:
        """Do an update, and record that it is done, however long the disk is full."""
        row = await self._retry_store(lambda: self._messenger.inbox.update(number))
        if row is None:
            return
        album: dict[int, Message] = {}
        try:
            update = read_update(row.body)
            album = await self._retry_store(lambda: self._album(row, update))
            await self._handle(row, update, album)
        except BotApiError:  # what an older version has stored
            log.exception("update %d cannot be read", number)
        now = self._messenger.clock.now()
        await self._retry_store(lambda: self._finish((number, *album), now))

    def _finish(self, numbers: tuple[int, ...], now: float) -> None:
        with self._messenger.database.transaction():
            for number in numbers:
                self._messenger.inbox.mark_done(number, now)

    async def _retry_store(self, call: Callable[[], _Result]) -> _Result:
        """Read or write the front's file; again and again while the disk is full."""
        failures = 0
        while True:
            try:
                return call()
            except sqlite3.OperationalError as error:
                log.error("the state of the Telegram front cannot be used: %s", error)
            await self._messenger.clock.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            failures += 1

    async def _handle(self, row: Waiting, update: Update, album: dict[int, Message]) -> None:
        await self.load()
        from quarterdeck.fronts.telegram.talk import handle

        begun = row.begun
        for failures in range(1_000_000):
            await self._retry_store(lambda: self._messenger.inbox.begin(row.update_id))
            try:
                await handle(self._services, update, tuple(album.values()), begun=begun)
            except sqlite3.OperationalError as error:
                log.error("an update waits for the disk: %s", error)
                begun = True
                await self._messenger.clock.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
                continue
            except LinkError as error:
                if failures == 0:
                    log.info("an update waits for the hub: %s", error)
                self._services.health.hub_failure = str(error)
                if failures == 2:
                    self._say_away(update)
                begun = True
                await self._messenger.clock.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
                continue
            except Exception:  # it is done with, so that all that follow it can be
                log.exception("update %d could not be handled", row.update_id)
            break

    def _album(self, row: Waiting, update: Update) -> dict[int, Message]:
        """The other messages of the same album that have come, by the numbers of their updates."""
        if update.message is None or not update.message.media_group_id:
            return {}
        found: dict[int, Message] = {}
        for other in self._messenger.inbox.in_lane(row.lane):
            message = read_update(other.body).message
            if other.update_id == row.update_id or message is None:
                continue
            if message.media_group_id == update.message.media_group_id:
                found[other.update_id] = message
        return found

    def _say_away(self, update: Update) -> None:
        job = job_of(self._services, update)
        if job is not None:
            with suppress(sqlite3.Error):
                job.say("⏳ The hub does not answer. I keep trying.", name="away")
