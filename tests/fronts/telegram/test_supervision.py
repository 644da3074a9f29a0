"""A part of the front that fails, and a full disk: the rest goes on, and nothing is lost."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from quarterdeck.config import Settings
from quarterdeck.config.settings import SandboxDefaults, TelegramSettings
from quarterdeck.fronts.http import Listen
from quarterdeck.fronts.telegram.bot import Bot
from quarterdeck.fronts.telegram.later import Later
from quarterdeck.fronts.telegram.options import HEALTH, StoredHealth
from quarterdeck.fronts.telegram.outbox import Outbox
from quarterdeck.fronts.telegram.outbox_calls import Calls
from quarterdeck.fronts.telegram.progress import SessionProgress
from quarterdeck.fronts.telegram.reporter import Reporter
from quarterdeck.fronts.telegram.supervision import PAUSES, STEADY_SECONDS, keep_running
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service.service import ServeOptions, run_service
from quarterdeck.testing.telegram.server import BotApiServer
from support.bounds import SECONDS
from support.telegram_house import TelegramHouse
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Slept(Clock):
    """A clock that only counts."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds


async def test_the_pauses_grow_until_a_part_has_worked_for_a_while() -> None:
    clock, failures = Slept(), list[str]()
    # How long each run lasts before it fails; the last one returns.
    lasts = [0.0] * (len(PAUSES) + 1) + [STEADY_SECONDS + 1, 0.0]

    async def run() -> None:
        if not lasts:
            return
        clock.at += lasts.pop(0)
        raise ExceptionGroup("children", [ValueError("no")])

    await keep_running("it", run, clock, lambda part, _: failures.append(part))
    assert clock.pauses == [*PAUSES, PAUSES[-1], PAUSES[0], PAUSES[1]]
    assert failures == ["it"] * len(clock.pauses)


OWN = ContextVar("own", default=False)
"""Whether the task is one of the front of this test. Another front of the worker may run too."""


@pytest.fixture
async def house(bare_house: TelegramHouse) -> AsyncIterator[TelegramHouse]:
    """A house with a front of this test alone."""

    async def run() -> None:
        OWN.set(True)
        await bare_house.run()

    async with background_tasks() as tasks:
        tasks.start_soon(run)
        yield bare_house
        await bare_house.clear()


PARTS: dict[type[Any], tuple[str, bool]] = {
    Reporter: ("events", True),
    Bot: ("receive", True),
    Later: ("fire", True),
    Outbox: ("_serve", True),
    Calls: ("_plain_enough", False),
    SessionProgress: ("take", False),
}
"""A function of each part that is to fail, and whether the part has to be started again."""


async def test_each_part_may_fail_and_the_front_goes_on(
    house: TelegramHouse, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ada, health = await house.person(), house.running.health
    await ada.tells("hello", "echo: hello")
    restarts = 0
    for place, (name, starts_again) in PARTS.items():
        works, failed = getattr(place, name), list[str]()

        def fail(
            *given: Any, works: Any = works, failed: list[str] = failed, **named: Any
        ) -> object:
            if OWN.get() and not failed:
                failed.append("once")
                raise RuntimeError("a defect")
            return works(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(place, name, fail)
            await ada.tells(f"again {name}", f"echo: again {name}")
            with anyio.fail_after(SECONDS):
                await until(lambda failed=failed: bool(failed))  # type: ignore[misc]
                restarts += starts_again
                await until(lambda least=restarts: health.failures >= least)  # type: ignore[misc]
        assert health.failures == restarts, name
    told = await ada.tells("/health", f"started again {restarts} times")
    assert "RuntimeError" in told.shown
    assert house.running.messenger is not None
    stored = house.running.messenger.state.meta(HEALTH)
    assert stored is not None
    kept = msgspec.json.decode(stored, type=StoredHealth)
    assert (kept.part, kept.failed) == (health.failed_part, health.failed_at)
    assert "a defect" in caplog.text


MESSAGES = 10


async def test_a_full_disk_delays_messages_and_loses_none(
    house: TelegramHouse, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await house.person()
    assert house.running.messenger is not None
    connection = house.running.messenger.database.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with caplog.at_level(logging.ERROR):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            connection.execute("INSERT INTO meta VALUES ('x', ?)", (b"x" * 100_000,))
        for number in range(MESSAGES):
            ada.type(f"{number}: " + "long " * 700)
        with anyio.fail_after(SECONDS):
            await until(lambda: "is full" in caplog.text)
    connection.execute("PRAGMA max_page_count = 1000000")
    for number in range(MESSAGES):
        await ada.hears(f"echo: {number}: ")
    (session,) = await ada.until(lambda found: found[0].turns + found[0].queued >= MESSAGES)
    assert session.turns + session.queued == MESSAGES
    assert house.running.health.failures == 0


async def test_a_bot_that_cannot_start_is_tried_again_while_the_hub_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, token = tmp_path / "data", tmp_path / "token"
    make_private(home)
    state = home / "telegram.db"
    state.mkdir()
    async with BotApiServer() as telegram:
        token.write_text(telegram.token)
        settings = Settings(
            sandbox=SandboxDefaults(mode="off"),
            telegram=TelegramSettings(token_file=str(token), users=(5000,), api=telegram.url),
        )
        options = ServeOptions(
            listen=Listen(host="127.0.0.1", port=0), settings=settings, runner=False
        )
        async with run_service(home, options) as service:
            with anyio.fail_after(SECONDS):
                await until(lambda: "the bot failed" in caplog.text)
                assert await service.hub.sessions() == []
                assert telegram.calls_of("getUpdates") == []
                state.rmdir()
                await until(lambda: bool(telegram.calls_of("getUpdates", code=200)))
