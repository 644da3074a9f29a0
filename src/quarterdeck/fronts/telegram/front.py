"""The front as a whole: everything that runs, tied together.

`run_front` works until it is cancelled, whatever Telegram and the hub do: a wrong token, a second
poller, a network that is down and a hub that is away are logged, waited for and tried again.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from quarterdeck.client.calls import HubAddress
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.api import API, BotApi, BotApiError, open_bot
from quarterdeck.fronts.telegram.ask_store import AskStore
from quarterdeck.fronts.telegram.bot import PAUSES, Bot
from quarterdeck.fronts.telegram.commands.table import menu
from quarterdeck.fronts.telegram.database import Database, SharedState
from quarterdeck.fronts.telegram.follower import Follower
from quarterdeck.fronts.telegram.inbox import Inbox
from quarterdeck.fronts.telegram.jobs import Health, Services
from quarterdeck.fronts.telegram.later import Later
from quarterdeck.fronts.telegram.messenger import Messenger
from quarterdeck.fronts.telegram.options import Options
from quarterdeck.fronts.telegram.outbox import Outbox
from quarterdeck.fronts.telegram.outbox_news import Failed
from quarterdeck.fronts.telegram.outbox_store import OutboxStore
from quarterdeck.fronts.telegram.people import open_people
from quarterdeck.fronts.telegram.reporter import Reporter
from quarterdeck.fronts.telegram.state import FrontState
from quarterdeck.fronts.telegram.supervision import keep_running
from quarterdeck.fronts.telegram.types import Me
from quarterdeck.fronts.telegram.webhook import WebhookSettings, run_webhook
from quarterdeck.runtime.clock import Clock

log = logging.getLogger(__name__)

ME = "me"
"""The stored name under which the bot knows itself."""


class FrontSettings(Value):
    """What the front needs to start."""

    token: str
    options: Options
    state: Path
    """The file of its state."""
    api: str = API
    webhook: WebhookSettings | None = None
    """Where Telegram posts updates to; None: it is asked for them."""

    def __post_init__(self) -> None:
        """Refuse a bot that would talk to nobody, or to everybody."""
        if not self.options.users:
            raise UsageError("telegram: users: name the Telegram users who may talk to the bot")


class RunningFront(Struct):
    """The front while it runs, for those who change its settings or look at it."""

    health: Health
    messenger: Messenger | None = None
    services: Services | None = None

    def change(self, options: Options) -> None:
        """Use other settings from now on."""
        if self.messenger is not None:
            self.messenger.options = options


async def run_front(
    where: HubAddress,
    settings: FrontSettings,
    *,
    clock: Clock | None = None,
    running: RunningFront | None = None,
    shared: SharedState | None = None,
) -> None:
    """Work until cancelled. `where` has the bot's own token, which needs no more than to read.

    With `shared`, another hub can go on where this one stops: before each call to Telegram the
    others know what led to it.
    """
    clock = clock or Clock()
    running = running or RunningFront(health=Health())
    running.health.began = clock.now()
    # A new file waits for the disk.
    database = await anyio.to_thread.run_sync(Database, settings.state)
    try:
        if shared is not None:
            for tables in (FrontState, Inbox, AskStore, OutboxStore):
                tables(database)
            await shared.join(database.connection)
        async with open_bot(settings.token, base=settings.api) as api, open_people(where) as people:
            if shared is not None:
                api.before = shared.keep
            outbox = Outbox(
                api,
                OutboxStore(database),
                clock,
                on_failed=_log_failure,
                on_migrated=partial(_migrate, running),
            )
            messenger = running.messenger = Messenger(database, outbox, settings.options, clock)
            me = await _introduce(api, messenger, running.health)
            if settings.webhook is None:
                await _end_webhook(api)
            reporter = Reporter(messenger)
            services = Services(messenger, people, reporter, api, me, running.health)
            running.services = services
            bot = Bot(services)

            def note_failure(part: str, error: Exception) -> None:
                running.health.note_failure(part, error, clock.now())
                with suppress(sqlite3.Error):
                    running.health.store(messenger.state)

            async with anyio.create_task_group() as tasks:

                def keep(part: str, run: Callable[[], Awaitable[None]]) -> None:
                    tasks.start_soon(keep_running, part, run, clock, note_failure)

                keep("the outbox", outbox.run)
                follower = Follower(messenger, people, reporter)
                services.follow = follower.want
                keep("the hub's stream", follower.run)
                keep("progress", reporter.run)
                keep("what is due", Later(services, bot).run)
                keep("the menu", partial(_set_menu, api, messenger))
                bot.begin(tasks)
                if settings.webhook is None:
                    keep("polling", bot.poll)
                else:
                    await bot.load()
                    webhook = partial(
                        run_webhook,
                        api,
                        settings.webhook,
                        bot.receive,
                        clock,
                        on_failure=partial(setattr, running.health, "poll_failure"),
                    )
                    keep("the webhook", webhook)
    finally:
        database.close()


async def _introduce(api: BotApi, messenger: Messenger, health: Health) -> Me:
    """Who the bot is. As long as Telegram does not say, what it said the last time."""
    stored = messenger.state.meta(ME)
    failures = 0
    while True:
        try:
            me = await api.get_me()
            messenger.state.set_meta(ME, msgspec.json.encode(me))
            return me
        except BotApiError as error:
            if not failures or health.poll_failure != str(error):
                log.warning("the bot cannot be started yet: %s", error)
            health.note_poll(messenger.state, messenger.clock.now(), str(error))
            if stored is not None and error.passing:
                return msgspec.json.decode(stored, type=Me)
        await messenger.clock.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
        failures += 1


async def _end_webhook(api: BotApi) -> None:
    """Have Telegram keep updates until it is asked for them: else it refuses to be polled."""
    try:
        if (await api.get_webhook_info()).url:
            await api.delete_webhook()
    except BotApiError as error:
        log.info("whether there is a webhook is not known: %s", error)


async def _set_menu(api: BotApi, messenger: Messenger) -> None:
    """Have the chats show our commands."""
    failures = 0
    while True:
        try:
            if await api.get_my_commands() != menu():
                await api.set_my_commands(menu())
            return
        except BotApiError as error:
            log.info("the command menu cannot be set yet: %s", error)
        await messenger.clock.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
        failures += 1


def _log_failure(failed: Failed) -> None:
    log.warning(
        "Telegram refuses a message to chat %d for good: %s [%d]",
        failed.chat,
        failed.description,
        failed.code,
    )


def _migrate(running: RunningFront, chats: tuple[int, int]) -> None:
    old, new = chats
    if running.messenger is not None:
        running.messenger.state.migrate(old, new)
        running.messenger.asks.migrate(old, new)
