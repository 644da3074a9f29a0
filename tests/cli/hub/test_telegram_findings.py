"""What the doctor finds about the Telegram bot: token, poller, permissions, menu."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.cli.hub.telegram_findings import look_at_telegram
from quarterdeck.cli.local.findings import Finding, Level
from quarterdeck.config import Settings
from quarterdeck.config.settings import TelegramSettings
from quarterdeck.fronts.telegram.api import open_bot
from quarterdeck.fronts.telegram.chats import Place
from quarterdeck.fronts.telegram.commands.table import menu
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.fronts.telegram.options import HEALTH, StoredHealth
from quarterdeck.fronts.telegram.state import FrontState
from quarterdeck.service.telegram import STATE
from quarterdeck.testing.telegram import BotApiServer

pytestmark = pytest.mark.anyio

ADA = 11


class Office:
    """A data folder with a bot, and the server of its Bot API."""

    def __init__(self, home: Path, server: BotApiServer) -> None:
        self.home = home
        self.server = server
        self.token = home / "token"
        self.token.write_text(server.token)
        self.token.chmod(0o600)
        self.webhook: str | None = None

    def store(self, change: Callable[[FrontState], None]) -> None:
        """Change the state of the bot, as the front does."""
        database = Database(self.home / STATE)
        try:
            change(FrontState(database))
        finally:
            database.close()

    def hear(self, seconds_ago: float, failure: str = "", failed_ago: float = 1e9) -> None:
        """The bot has heard from Telegram, or has not; a part of it has failed."""
        now = time.time()
        health = StoredHealth(
            polled=now - seconds_ago,
            failure=failure,
            failed=now - failed_ago,
            part="progress (KeyError)",
        )
        self.store(lambda state: state.set_meta(HEALTH, msgspec.json.encode(health)))

    async def look(self, *, running: bool = False) -> dict[str, Finding]:
        """The findings by their texts."""
        telegram = TelegramSettings(
            token_file=str(self.token), users=(ADA,), api=self.server.url, webhook_url=self.webhook
        )
        settings = Settings(telegram=telegram)

        def look() -> list[Finding]:
            return list(look_at_telegram(self.home, settings, running=running))

        return {found.text: found for found in await anyio.to_thread.run_sync(look)}


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with BotApiServer() as server:
        server.sim.add_user(ADA)
        yield Office(tmp_path, server)


def level_of(found: dict[str, Finding], text: str) -> Level | None:
    """The level of the finding with this text in it; None if there is none."""
    return next((each.level for each in found.values() if text in each.text), None)


async def test_without_a_bot_nothing_is_asked_and_nothing_is_found(office: Office) -> None:
    assert list(look_at_telegram(office.home, Settings(), running=True)) == []
    assert office.server.calls == []


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("1:wrong", "Telegram does not accept the token"),
        ("", "there is no token in"),
        ("two words", "there is no token in"),
        (None, "cannot be read"),
    ],
)
async def test_a_token_that_is_missing_or_wrong_is_a_problem(
    office: Office, token: str | None, text: str
) -> None:
    if token is None:
        office.token.unlink()
    else:
        office.token.write_text(token)
    found = await office.look()
    assert level_of(found, text) is Level.PROBLEM
    assert not any(token in each for each in found if token), "a token is not shown"


async def test_a_good_token_is_told_with_the_name_of_the_bot(office: Office) -> None:
    found = await office.look()
    assert level_of(found, "the token is that of @test_bot") is Level.OK
    assert level_of(found, "can read the bot's token") is None
    office.token.chmod(0o640)
    assert level_of(await office.look(), "can read the bot's token") is Level.WARNING


async def test_a_telegram_that_does_not_answer_is_a_warning(office: Office) -> None:
    office.server.fail("error", method="getMe")
    assert level_of(await office.look(), "Telegram:") is Level.WARNING


@pytest.mark.parametrize(
    ("seconds_ago", "failure", "level", "text"),
    [
        (5.0, "", Level.OK, "gets updates"),
        (600.0, "", Level.WARNING, "last answer from Telegram"),
        (5.0, "Telegram: Conflict: terminated by other [409]", Level.PROBLEM, "Conflict"),
    ],
)
async def test_the_poller_of_the_running_hub_is_looked_at(
    office: Office, seconds_ago: float, failure: str, level: Level, text: str
) -> None:
    assert level_of(await office.look(running=True), "no answer from Telegram yet") is Level.WARNING
    office.hear(seconds_ago, failure)
    found = await office.look(running=True)
    assert level_of(found, text) is level
    conflict = next((each for each in found.values() if "[409]" in each.text), None)
    assert (conflict is not None) == ("[409]" in failure)
    if conflict is not None:
        assert "Another program polls" in conflict.advice
    # A hub that does not run has no poller, and the doctor itself disturbs none.
    assert level_of(await office.look(), text) is None
    assert office.server.calls_of("getUpdates") == []


async def test_a_part_that_failed_is_told_for_a_day(office: Office) -> None:
    text = "failed 5 min ago, and was started again: progress (KeyError)"
    office.hear(5.0, failed_ago=330.0)
    assert level_of(await office.look(running=True), text) is Level.WARNING
    assert level_of(await office.look(running=True), "gets updates") is Level.OK
    office.hear(5.0, failed_ago=90_000.0)
    assert level_of(await office.look(running=True), "was started again") is None


async def test_the_menu_is_compared_with_ours(office: Office) -> None:
    assert level_of(await office.look(), "menu is not that of this version") is Level.WARNING
    async with open_bot(office.server.token, base=office.server.url) as api:
        await api.set_my_commands(menu())
    assert level_of(await office.look(), f"the menu has all {len(menu())}") is Level.OK
    assert len(office.server.calls_of("setMyCommands")) == 1, "the doctor changes nothing"


async def test_a_webhook_that_is_in_the_way_or_missing_is_a_warning(office: Office) -> None:
    assert level_of(await office.look(), "webhook") is None
    office.webhook = "http://127.0.0.1:9/hook"
    assert level_of(await office.look(), "no webhook is set") is Level.WARNING
    async with open_bot(office.server.token, base=office.server.url) as api:
        await api.set_webhook(office.webhook, "secret")
    assert level_of(await office.look(), "no webhook is set") is None
    office.webhook = None
    assert level_of(await office.look(), "to another address") is Level.WARNING


async def test_what_the_bot_may_do_in_groups_is_told(office: Office) -> None:
    sim = office.server.sim
    free, plain, left = (sim.add_group(name, [ADA]).id for name in ("free", "plain", "left"))
    gone = -100999
    sim.set_status(plain, office.server.world.bot.id, "member")
    sim.set_status(left, office.server.world.bot.id, "left")

    def meet(state: FrontState) -> None:
        for chat in (gone, free, plain, left):
            state.note_user(Place(chat=chat), private=False)

    office.store(meet)
    found = await office.look()
    assert level_of(found, f"{free}") is None
    assert level_of(found, f"may not manage topics in the group {plain}") is Level.NOTE
    assert level_of(found, f"no member of the group {left}") is Level.WARNING
    assert level_of(found, f"no member of the group {gone}") is Level.WARNING


async def test_the_privacy_mode_is_told(office: Office) -> None:
    assert level_of(await office.look(), "sees only commands") is None
    office.server.sim.set_privacy(True)
    assert level_of(await office.look(), "sees only commands") is Level.NOTE
