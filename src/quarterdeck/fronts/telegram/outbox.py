"""The outbox: decides when a message is sent, edited or deleted.

A caller names each message with a `key` and says what it should show. The outbox does the rest, in
the order of each chat, within the limits of Telegram:

- `send` stores the message. A known key is not sent again, so a repeated call is harmless.
- `edit` sets what the message should show; if it has changed again before its turn, only the newest
  is sent. With `lazy` it is for progress: it is not stored, and gives way to everything else.
- `delete` deletes the message, or takes it back if it has not been sent.
- `draft` shows a text that is being written, in a private chat, until `end_draft` or the message.

One chat that must wait delays no other. What is stored survives a restart, with the waiting time
that Telegram asked for. If the process is killed during a call, the message may have been sent:
`outbox_calls` finds out, by an edit that changes nothing, before it is sent again.

Everything that the bot sends goes through here. Calls that show nothing in a chat (answers to
pressed buttons, downloads) do not.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from quarterdeck.fronts.telegram.api import BotApi, BotApiError, Upload
from quarterdeck.fronts.telegram.budget import Limits
from quarterdeck.fronts.telegram.outbox_calls import FILES, Calls
from quarterdeck.fronts.telegram.outbox_news import Counts, Failed, Sent, notify
from quarterdeck.fronts.telegram.outbox_store import (
    Content,
    Form,
    OutboxStore,
    State,
    Stored,
    Task,
)
from quarterdeck.fronts.telegram.text import LONGEST_CAPTION, Part, fit, sendable
from quarterdeck.fronts.telegram.turns import ChatTurn, Draft, Turns
from quarterdeck.fronts.telegram.types import Buttons
from quarterdeck.runtime.clock import Clock

log = logging.getLogger(__name__)

TOKEN_SECONDS = 60.0
"""Between attempts while Telegram does not accept the token."""
LONGEST_BLOCK = 86400.0
"""The most to wait because Telegram asks for it."""
DOUBT_SECONDS = 60.0
"""The most that a reply waits, beyond calls, for the number of a message that may have been sent:
five numbers are tried, in a group three seconds apart."""
MOST_TRIES = 5
"""How often a message is tried whose call fails in this process."""
BELIEVED_BLOCK = 3600.0
"""The same, of what was stored before a restart: a call that is too early costs one refusal."""


class Outbox:
    """The outbox of one bot. `run` does the work; the other methods return at once."""

    def __init__(
        self,
        api: BotApi,
        store: OutboxStore,
        clock: Clock,
        *,
        limits: Limits | None = None,
        on_sent: Callable[[Sent], None] | None = None,
        on_failed: Callable[[Failed], None] | None = None,
        on_migrated: Callable[[tuple[int, int]], None] | None = None,
    ) -> None:
        """`on_sent` runs in the transaction that stores the message's number."""
        self.counts = Counts()
        self._api = api
        self._store = store
        self._clock = clock
        self._limits = limits = limits or Limits()
        self._on_sent = on_sent
        self._on_failed = on_failed
        self._on_migrated = on_migrated
        self._turns = Turns(limits)
        self._news = anyio.Event()
        self._calls = Calls(api, store)
        self._idle = anyio.Event()
        self._turned = anyio.Event()  # set when a call has ended

    # --- what a caller wants ---------------------------------------------------------------------

    def send(
        self,
        chat: int,
        thread: int | None,
        *parts: Part,
        key: str,
        buttons: Buttons = (),
        file: Upload | None = None,
        photo: bool = False,
        html: str = "",
        reply_to: int | None = None,
        silent: bool = False,
    ) -> bool:
        """Send a message, unless one with this key was sent before; whether it is new.

        Of several parts the last one has the key and the buttons; those before it are `key/1`,
        `key/2` and so on. With `file` there is at most one part, its caption. `html` is the same
        as a rich message.
        """
        at = self._clock.now()
        if file is None:
            form = Form.RICH if html else Form.TEXT
        elif not file.masked:
            form = Form.UNMASKED
        else:
            form = Form.PHOTO if photo else Form.DOCUMENT
        new = False
        shown = sendable(parts, caption=file is not None)
        with self._store.database.transaction():
            for number, part in enumerate(shown, 1):
                last = number == len(shown)
                content = Content(
                    text=part.text,
                    entities=part.entities,
                    buttons=buttons if last else (),
                    html=html,
                )
                message = Stored(
                    key=key if last else f"{key}/{number}",
                    chat=chat,
                    thread=thread,
                    message_id=None,
                    form=form,
                    wanted=content,
                    shown=None,
                    reply_to=reply_to if number == 1 else None,
                    silent=silent,
                    state=State.WAITING,
                    after_id=0,
                )
                new = self._store.add(message, file if last else None, at)
        self._chat(chat).drafts.pop(key, None)
        self._wake(chat)
        return new

    def edit(
        self, key: str, part: Part, buttons: Buttons = (), *, html: str = "", lazy: bool = False
    ) -> bool:
        """Set what a message shows; False if there is none with this key, or no longer."""
        message = self._store.get(key)
        if message is None or message.state in {State.FAILED, State.DELETED}:
            return False
        part = fit(part, LONGEST_CAPTION) if message.form in FILES else fit(part)
        content = Content(text=part.text, entities=part.entities, buttons=buttons, html=html)
        if lazy:
            self._chat(message.chat).lazy[key] = content
        else:
            self._chat(message.chat).lazy.pop(key, None)
            if content != message.wanted or content != message.shown:
                self._store.want(message, content)
        self._wake(message.chat)
        return True

    def delete(self, key: str) -> bool:
        """Delete a message; False if there is none with this key, or no longer."""
        message = self._store.get(key)
        if message is None or message.state in {State.FAILED, State.DELETED}:
            return False
        self._chat(message.chat).lazy.pop(key, None)
        if message.state is State.WAITING:
            self._store.record_end(key, State.DELETED)
        else:
            self._store.put_delete(message)
            self._wake(message.chat)
        return True

    def draft(
        self,
        chat: int,
        thread: int | None,
        part: Part,
        *,
        key: str,
        can_stop: bool = False,
    ) -> int:
        """Show a text that is being written; the number by which Telegram names the draft."""
        number = self._store.draft_id(key, chat, self._clock.now())
        drafts = self._chat(chat).drafts
        if key in drafts:
            drafts[key].part = part
        else:
            drafts[key] = Draft(chat, thread, number, part, can_stop)
        self._wake(chat)
        return number

    def end_draft(self, key: str) -> None:
        """Show a draft no longer; Telegram removes it soon, or when a message comes."""
        for chat in self._turns:
            chat.drafts.pop(key, None)

    def draft_key(self, draft_id: int, chat: int) -> str | None:
        """The key of a draft, for a press on Stop."""
        return self._store.draft_key(draft_id, chat)

    def message_id_of(self, key: str) -> int | None:
        """The number of a message; None while it is not sent."""
        message = self._store.get(key)
        return None if message is None else message.message_id

    def key_of(self, chat: int, message_id: int) -> str | None:
        """The key of a message that was sent."""
        message = self._store.find(chat, message_id)
        return None if message is None else message.key

    async def find_key(self, chat: int, message_id: int) -> str | None:
        """The key of a message that the bot has sent; None if it is not known.

        A person may reply to a message before Telegram has told us its number. So as long as a
        message of the chat is being sent, or may have been sent, the answer is waited for. A call
        has a limit of its own; beyond the calls the wait lasts `DOUBT_SECONDS` at most.
        """
        end = self._clock.now() + DOUBT_SECONDS
        while (key := self.key_of(chat, message_id)) is None:
            if not self._store.in_doubt(chat, message_id):
                return None
            turned, turn = self._turned, self._turns.find(chat)
            if turn is not None and turn.busy:
                await turned.wait()
                continue
            left = end - self._clock.now()
            if left <= 0:
                return None
            await self._clock.wait(turned, left)
        return key

    def state_of(self, key: str) -> State | None:
        """What became of a message."""
        message = self._store.get(key)
        return None if message is None else message.state

    def saw(self, chat: int, message_id: int) -> None:
        """Tell the outbox about a message of another sender, so that it knows how far a chat is."""
        self._store.saw(chat, message_id)

    @property
    def waiting(self) -> int:
        """How many messages have something left to do."""
        return self._store.count()

    def prune(self, days: float) -> int:
        """Forget messages that are older: replies to them lead nowhere, edits are not possible."""
        return self._store.prune(self._clock.now() - days * 86400)

    # --- the work --------------------------------------------------------------------------------

    async def flush(self, seconds: float) -> bool:
        """Wait until everything stored is done, at most that long; whether it is."""
        end = self._clock.now() + seconds
        while self._store.count():
            left = end - self._clock.now()
            if left <= 0 or not await self._clock.wait(self._idle, left):
                return False
        return True

    async def run(self) -> None:
        """Send until cancelled. After an error it can be called again."""
        self._turns.restart()
        for chat in self._store.chats():
            self._chat(chat)
        async with anyio.create_task_group() as tasks:
            while True:
                self._news = anyio.Event()
                await self._clock.wait(self._news, self._serve(tasks))

    def _serve(self, tasks: TaskGroup) -> float | None:
        """Begin all calls that are due; the seconds until the next one. None: nothing waits."""
        overall = self._turns.overall
        while not overall.full:
            now = self._clock.now()
            found = self._turns.next(now)
            if found is None:
                if not overall.in_flight:
                    self._idle.set()
                    self._idle = anyio.Event()
                return None
            chat, due = found
            if due > now:
                return due - now
            chat.busy = True
            chat.served = now
            overall.began()
            tasks.start_soon(self._turn, chat)
        return None  # the end of a call wakes us

    async def _turn(self, chat: ChatTurn) -> None:
        """One call for a chat, if there still is something to do."""
        called = False
        try:
            called = await self._work(chat)
        except Exception as error:
            # A full disk, or progress that cannot be made. What is stored is tried again.
            trace = not isinstance(error, sqlite3.Error)
            log.error("chat %d cannot be served: %s", chat.number, error, exc_info=trace)
            chat.budget.blocked_until = self._clock.now() + self._limits.longest_pause
        finally:
            now = self._clock.now()
            if called:
                chat.budget.note_call(now)
            self._turns.overall.note_end(now)
            chat.busy = False
            self._news.set()
            self._turned.set()
            self._turned = anyio.Event()

    async def _work(self, chat: ChatTurn) -> bool:
        """Do what is first; whether Telegram was called."""
        if (found := self._store.next(chat.number)) is not None:
            return await self._do(chat, *found)
        chat.stored = False
        if chat.lazy:
            key = next(iter(chat.lazy))
            return await self._show_progress(chat, key, chat.lazy.pop(key))
        if (draft := chat.next_draft(self._clock.now())) is not None:
            await self._show_draft(chat, *draft)
            return True
        return False

    async def _do(self, chat: ChatTurn, message: Stored, task: Task) -> bool:
        if task is Task.EDIT and message.wanted == message.shown:
            self._store.remove_work(message.key)
            return False
        try:
            if task is Task.SEND:
                await self._send(message)
            elif task is Task.DELETE:
                await self._delete(message)
            else:
                await self._edit(message, message.wanted)
        except BotApiError as error:
            self._note_refusal(chat, message, task, error)
        except sqlite3.Error:
            raise
        except Exception:  # a message that cannot be made must not hold up all that follow it
            log.exception("message %s could not be made", message.key)
            self._unmade(chat, message, task)
        else:
            self._note_acceptance(chat)
        return True

    # --- calls -----------------------------------------------------------------------------------

    async def _send(self, message: Stored) -> None:
        number = await self._calls.send(message)
        if number is None:
            return
        self._calls.forget(message.key)
        with self._store.database.transaction():
            self._store.record_sent(message, number, message.wanted)
            sent = Sent(
                key=message.key, chat=message.chat, thread=message.thread, message_id=number
            )
            notify(self._on_sent, sent)
        self.counts.sent += 1

    async def _edit(self, message: Stored, content: Content) -> None:
        assert message.message_id is not None
        try:
            await self._calls.edit(message, message.message_id, content)
        except BotApiError as error:
            if not error.unchanged:
                raise
        self._calls.forget(message.key)
        self._store.record_shown(message.key, content)
        self.counts.edited += 1

    async def _delete(self, message: Stored) -> None:
        if await self._calls.delete(message):
            self._calls.forget(message.key)
            self._store.record_end(message.key, State.DELETED)
            self.counts.deleted += 1

    async def _show_progress(self, chat: ChatTurn, key: str, content: Content) -> bool:
        message = self._store.get(key)
        if message is None or message.state is not State.SENT or message.shown == content:
            return False
        try:
            await self._edit(message, content)
        except BotApiError as error:
            if error.passing:
                chat.lazy.setdefault(key, content)  # unless there is newer progress
                self._pause(chat, error)
            else:
                # The next one may work; work of the store for this message is not touched.
                log.info("progress in message %s is not shown: %s", key, error)
        else:
            self._note_acceptance(chat)
        return True

    async def _show_draft(self, chat: ChatTurn, key: str, draft: Draft) -> None:
        part = draft.part
        draft.shown, draft.shown_at = part, self._clock.now()
        try:
            await self._api.send_message_draft(
                draft.chat,
                draft.number,
                part.text,
                thread=draft.thread,
                entities=part.entities,
                can_stop=draft.can_stop,
            )
        except BotApiError as error:
            if error.passing:
                self._pause(chat, error)
            else:
                chat.drafts.pop(key, None)
                self._note_failure(key, draft.chat, error)
        else:
            self.counts.drafts += 1
            self._note_acceptance(chat)

    # --- refusals --------------------------------------------------------------------------------

    def _note_refusal(
        self, chat: ChatTurn, message: Stored, task: Task, error: BotApiError
    ) -> None:
        new = error.migrate_to
        if new is not None and new != chat.number:
            self._migrate(chat.number, new)
        elif error.passing:
            self._pause(chat, error)
        elif error.code in {400, 404} and not error.gone and self._calls.make_plainer(message):
            # 404: a server of one's own may be too old for rich messages.
            log.info("message %s is sent plainer: %s", message.key, error)
        elif error.code in {401, 404}:
            log.error("Telegram does not accept the bot's token: %s", error.description)
            self._turns.overall.block(self._clock.now() + TOKEN_SECONDS)
        else:
            self._calls.forget(message.key)
            self._give_up(message, task, error)

    def _unmade(self, chat: ChatTurn, message: Stored, task: Task) -> None:
        """Try again later what has failed in this process, and give it up in the end."""
        error = BotApiError(0, "the message could not be made")
        if chat.tries < MOST_TRIES:
            self._pause(chat, error)
            return
        chat.tries = 0
        self._calls.forget(message.key)
        self._give_up(message, task, error)

    def _note_acceptance(self, chat: ChatTurn) -> None:
        chat.tries = 0
        self._turns.overall.note_accepted()

    def _pause(self, chat: ChatTurn, error: BotApiError) -> None:
        self.counts.retried += 1
        chat.tries += 1
        pause = min(2.0 ** min(chat.tries - 1, 16), self._limits.longest_pause)
        if error.retry_after is not None:
            pause = min(max(error.retry_after, 0.0), LONGEST_BLOCK)
        chat.budget.blocked_until = self._clock.now() + pause
        if error.code == 429:
            self._store.block(chat.number, chat.budget.blocked_until)
            self._turns.overall.note_refused(chat.number, self._clock.now(), pause)
        log.info("chat %d waits %g s: %s", chat.number, pause, error)

    def _give_up(self, message: Stored, task: Task, error: BotApiError) -> None:
        log.warning("message %s: %s", message.key, error)
        if task is Task.SEND:
            self._store.record_end(message.key, State.FAILED)
        elif error.gone:
            self._store.record_end(message.key, State.DELETED)
        else:
            self._store.remove_work(message.key)
        self._note_failure(message.key, message.chat, error)

    def _note_failure(self, key: str, chat: int, error: BotApiError) -> None:
        self.counts.failed += 1
        failed = Failed(key=key, chat=chat, code=error.code, description=error.description)
        notify(self._on_failed, failed)

    def _migrate(self, old: int, new: int) -> None:
        log.info("chat %d has become %d", old, new)
        self._store.migrate(old, new)
        notify(self._on_migrated, (old, new))
        self._wake(new)

    # --- memory ----------------------------------------------------------------------------------

    def _chat(self, number: int) -> ChatTurn:
        found = self._turns.find(number)
        if found is not None:
            return found
        # The machine's clock may have been set back since then.
        latest = self._clock.now() + BELIEVED_BLOCK
        return self._turns.add(number, min(self._store.blocked_until(number), latest))

    def _wake(self, number: int) -> None:
        self._chat(number).stored = True
        self._news.set()
