"""Two hubs behind one address: a page whose hub is killed goes on with the other one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import anyio
import pytest
from msgspec import Struct
from playwright.async_api import Browser, expect

from quarterdeck.service.service import Service
from support.bounds import SECONDS
from support.browser import NO_UNDO, browsing
from support.forks import Forks
from support.processes import Processes
from support.relay import Relay, relay_to
from support.several_hubs import COMMAND, SeveralHubs, several_hubs

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Place(Struct):
    """Where the page finds the hubs."""

    address: str


@pytest.fixture
async def hubs(
    tmp_path: Path, postgres_url: str, hubs_to_fork: Forks, processes: Processes
) -> AsyncIterator[SeveralHubs]:
    async with several_hubs(tmp_path, postgres_url, hubs_to_fork, processes) as made:
        yield made


async def pass_on(relay: Relay, hubs: SeveralHubs) -> None:
    """As a proxy with a health check: the first hub that listens gets new connections."""
    while True:
        for deck in (hubs.first, hubs.second):
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", deck.port)
                writer.close()
                relay.target = deck.port
                break
        await anyio.sleep(0.05)


async def test_the_page_of_a_killed_hub_answers_its_question_at_the_other_one(
    hubs: SeveralHubs, browser: Browser
) -> None:
    async with relay_to(hubs.first.port) as relay, anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on, relay, hubs)
        place = cast("Service", Place(f"http://127.0.0.1:{relay.port}"))
        async with browsing(browser, place) as screen:
            link = (await hubs.first("token", "--login")).out.strip()
            await screen.page.goto(link.replace(hubs.first.address, place.address))
            await expect(screen.page.get_by_role("link", name="Quarterdeck")).to_be_visible()
            await screen.page.evaluate(NO_UNDO)
            await screen.open(await hubs.create())
            await expect(screen.card).to_contain_text(COMMAND)
            with anyio.fail_after(SECONDS):  # the login is known to the other hub a moment later
                while "browser" not in (await hubs.second("token", "list")).out:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            # A part of the page that is just being loaded would be missing.
            await screen.page.wait_for_load_state("networkidle")
            await hubs.kill_first()
            # Nobody reloads the page.
            await expect(screen.card).to_contain_text(COMMAND)
            await screen.card.get_by_role("button", name="Allow once").click()
            await screen.hears("Done.")
            await expect(screen.card).to_have_count(0)
            # The page looks for the branch of a folder while its machine has no hub.
            screen.complaints[:] = [
                one for one in screen.complaints if "409" not in one or "/files)" not in one
            ]
        tasks.cancel_scope.cancel()
