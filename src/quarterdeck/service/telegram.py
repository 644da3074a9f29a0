"""The Telegram bot as a part of the service: from the configuration to a running front.

Owns the bot's own token in the data folder, and that the hub is never harmed by its bot. The front
talks to this hub as it would to any other: by the public client.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread

from quarterdeck.client.calls import HubAddress
from quarterdeck.config import Settings
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Access
from quarterdeck.fronts.http.tokens import Kind
from quarterdeck.fronts.telegram.chats import Binding, Preferences, approved_tools
from quarterdeck.fronts.telegram.display import Leaves
from quarterdeck.fronts.telegram.options import Options, QuietHours, Transcription
from quarterdeck.fronts.telegram.preload import load_front
from quarterdeck.protocol.roles import Role
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.files import replace_file

if TYPE_CHECKING:
    from quarterdeck.fronts.telegram.database import SharedState
    from quarterdeck.fronts.telegram.front import FrontSettings, RunningFront

STATE = "telegram.db"
OWN_TOKEN = "telegram.token"  # noqa: S105 - the name of a file
OWN_NAME = "telegram bot"


def telegram_options(settings: Settings) -> Options:
    """The front's settings. Raises `UsageError` for a time zone that there is not."""
    given = settings.telegram
    return Options(
        users=frozenset(given.users),
        leaves=Leaves() if given.sends is None else Leaves.of(given.sends),
        preferences=Preferences(
            model=given.model,
            mode=given.mode,
            effort=given.effort,
            verbose=given.verbose,
            rich=given.rich,
            drafts=given.drafts,
            trigger=given.trigger,
            cooldown=given.cooldown,
            approve=", ".join(approved_tools(", ".join(given.approve))) or None,
        ),
        binding=Binding(project=given.project, directory=given.directory),
        plan_cooldown=given.cooldown_seconds,
        quiet=_quiet(given.quiet_hours),
        daily=None if given.daily_summary is None else _minute(given.daily_summary),
        timezone=_zone(given.timezone),
        transcription=None
        if given.transcription_url is None
        else Transcription(
            url=given.transcription_url,
            key_file=given.transcription_key_file or "",
            model=given.transcription_model,
        ),
    )


def _minute(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


def _quiet(text: str | None) -> QuietHours | None:
    if text is None:
        return None
    begin, _, end = text.partition("-")
    return QuietHours(begin=_minute(begin), end=_minute(end))


def _zone(name: str | None) -> str:
    if name is None:
        return ""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(f"timezone: there is no time zone {name!r}") from error
    return name


def bot_token(path: str) -> str:
    """The token of the bot, from its file. Raises `UsageError`."""
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"telegram: token_file: {path} cannot be read: {error}") from error
    if not token or not token.isascii() or any(letter.isspace() for letter in token):
        raise UsageError(f"telegram: token_file: there is no token in {path}")
    return token


def own_hub_token(home: Path, access: Access) -> str:
    """The token with which the bot reads this hub; created if it is missing or not valid."""
    file = home / OWN_TOKEN
    valid = {grant.id for grant in access.grants() if grant.kind is Kind.TOKEN}
    if file.exists():
        token = file.read_text().strip()
        if any(f"_{grant}_" in token for grant in valid):
            return token
    token = access.make_token(OWN_NAME, Role.VIEWER)
    replace_file(file, token.encode())
    return token


def front_settings(settings: Settings, state: Path) -> FrontSettings:
    """What the front needs to start. Raises `UsageError`."""
    from quarterdeck.fronts.telegram.api import API
    from quarterdeck.fronts.telegram.front import FrontSettings
    from quarterdeck.fronts.telegram.webhook import WebhookSettings

    given = settings.telegram
    if given.token_file is None:
        raise UsageError("telegram: token_file is missing")
    webhook = None
    if given.webhook_url is not None:
        webhook = WebhookSettings(
            url=given.webhook_url, host=given.webhook_host, port=given.webhook_port
        )
    return FrontSettings(
        token=bot_token(given.token_file),
        options=telegram_options(settings),
        state=state,
        api=given.api or API,
        webhook=webhook,
    )


class TelegramBot:
    """The bot of a hub, if the configuration has one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: RunningFront | None = None
        if settings.telegram.token_file is not None:
            bot_token(settings.telegram.token_file)  # a wrong path is told at the start

    def change(self, settings: Settings) -> None:
        """Use other settings from now on. The token is fixed at the start."""
        self._settings = settings
        if self._running is not None:
            self._running.change(telegram_options(settings))

    async def run(
        self,
        home: Path,
        access: Access,
        address: str,
        ca_file: Path | None,
        shared: SharedState | None = None,
    ) -> None:
        """Work until cancelled. Returns at once if there is no bot."""
        if self._settings.telegram.token_file is None:
            return
        # A hub without a bot does not load it; one with a bot serves others meanwhile.
        await anyio.to_thread.run_sync(load_front)
        from quarterdeck.fronts.telegram.front import RunningFront, run_front
        from quarterdeck.fronts.telegram.jobs import Health
        from quarterdeck.fronts.telegram.supervision import keep_running

        clock, health = Clock(), Health()

        async def run_once() -> None:
            token = await anyio.to_thread.run_sync(own_hub_token, home, access)
            where = HubAddress(address=address, token=token, insecure=True, ca_file=ca_file)
            front = front_settings(self._settings, home / STATE)
            self._running = RunningFront(health=health)
            await run_front(where, front, clock=clock, running=self._running, shared=shared)

        def note_failure(part: str, error: Exception) -> None:
            health.note_failure(part, error, clock.now())

        # Whatever happens to the bot, the hub goes on.
        await keep_running("the bot", run_once, clock, note_failure)
