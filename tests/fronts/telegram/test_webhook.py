"""Updates by webhook: with the secret only, stored before they are answered, none lost."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.api import open_bot
from quarterdeck.fronts.telegram.types import Update
from quarterdeck.fronts.telegram.webhook import (
    LARGEST_UPDATE,
    WebhookApp,
    WebhookSettings,
    run_webhook,
)
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.runtime.web_server import bind, run_server, server_config
from quarterdeck.testing.telegram import NO_LIMITS, BotApiServer
from support.apart import apart
from support.bounds import SECONDS
from support.waiting import until

ADA = 11
SECRET = "the-secret"


@asynccontextmanager
async def receiving(
    server: BotApiServer, take: Callable[[list[Update]], None]
) -> AsyncIterator[list[str]]:
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    settings = WebhookSettings(url=f"http://127.0.0.1:{port}/hook/x", port=port)
    failures: list[str] = []

    async def run() -> None:
        async with open_bot(server.token, base=server.url, timeout=SECONDS) as api:
            await run_webhook(
                api, settings, take, server.clock, on_failure=failures.append, listener=listener
            )

    async with background_tasks() as tasks:
        tasks.start_soon(run)
        yield failures


async def test_updates_are_posted_in_order_and_again_until_they_are_stored() -> None:
    taken: list[Update] = []
    broken = [True, False, True]

    def take(updates: list[Update]) -> None:
        if broken and broken.pop(0):
            raise sqlite3.OperationalError("database or disk is full")
        taken.extend(updates)

    async with BotApiServer(limits=NO_LIMITS, clock=Clock(speed=50)) as server:
        server.sim.add_user(ADA)
        server.fail("error", "setWebhook")
        async with receiving(server, take) as failures:
            for number in range(10):
                server.sim.type(ADA, f"{number}")
            with anyio.fail_after(SECONDS):
                await until(lambda: len(taken) == 10)
                await until(lambda: server.sim.pending_count() == 0)
        texts = [update.message.text for update in taken if update.message]
        assert texts == [f"{number}" for number in range(10)]
        assert failures[-1] == ""
        assert len(failures) == 2


def post(headers: dict[str, str], path: str = "/hook", body: bytes = b"") -> dict[str, object]:
    return {"method": "POST", "url": path, "headers": headers, "content": body}


GOOD = {"x-telegram-bot-api-secret-token": SECRET}
UPDATE = b'{"update_id": 7, "message": {"message_id": 1, "chat": {"id": 11}, "text": "x"}}'
POSTS: dict[str, tuple[dict[str, object], int, int]] = {
    "an update": (post(GOOD, body=UPDATE), 200, 1),
    "one of an unknown kind": (post(GOOD, body=b'{"update_id": 8, "new": 1}'), 200, 1),
    "no secret": (post({}, body=UPDATE), 401, 0),
    "a wrong secret": (post({"x-telegram-bot-api-secret-token": "x"}, body=UPDATE), 401, 0),
    "another path": (post(GOOD, "/hook/", UPDATE), 404, 0),
    "another method": ({"method": "GET", "url": "/hook", "headers": GOOD}, 405, 0),
    "no update": (post(GOOD, body=b"[]"), 200, 0),
    "no JSON": (post(GOOD, body=b"\xff{"), 200, 0),
    "too large": (post(GOOD, body=b" " * (LARGEST_UPDATE + 1)), 413, 0),
}


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[str, list[Update]]]:
    """The app on a port, and what it takes."""
    taken: list[Update] = []
    app = WebhookApp("/hook", SECRET, taken.extend)
    with bind("127.0.0.1", 0) as listener:
        async with run_server(server_config(app, pong_seconds=20.0), listener):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken


@pytest.fixture(scope="module")
async def hook() -> AsyncIterator[tuple[str, list[Update]]]:
    async with apart(listening()) as made:
        yield made


@pytest.mark.parametrize("case", POSTS)
async def test_only_updates_with_the_secret_are_taken(
    hook: tuple[str, list[Update]], case: str
) -> None:
    request, status, count = POSTS[case]
    url, taken = hook
    taken.clear()
    async with httpx2.AsyncClient(
        base_url=url, timeout=SECONDS, trust_env=False, verify=False
    ) as client:
        answer = await client.request(**request)  # type: ignore[arg-type]
    assert (answer.status_code, len(taken)) == (status, count)
    assert answer.content == b""


@pytest.mark.parametrize("url", ["", "host/path", "ftp://host/x", "https://", "http://["])
def test_an_address_that_telegram_cannot_post_to_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="webhook: url"):
        WebhookSettings(url=url)
