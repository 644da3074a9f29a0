"""The page of schedules: run one now, pause it, read its history; on a desktop and on a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from playwright.async_api import expect

from quarterdeck.config import Settings
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.schedules import Schedule
from quarterdeck.testing import RealCli, isolated_env
from support.apart import apart
from support.api_client import ApiSeat
from support.bounds import SECONDS
from support.browser import Screen, serving

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.fixture(scope="module")
async def house(
    clis: dict[str, RealCli], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiSeat]:
    """A service of its own: its configuration is changed."""
    async with apart(serving(clis, tmp_path_factory)) as made:
        yield made


async def until_last(seat: ApiSeat, state: str) -> str:
    """Wait until the newest start of the schedule is in this state; gives its session."""
    with anyio.fail_after(SECONDS):
        while True:
            (found,) = (await seat.ada.get("schedules"))["schedules"]
            if found["last"] is not None and found["last"]["state"] == state:
                return str(found["last"]["session"])
            await anyio.sleep(0.05)


async def test_a_schedule_is_run_paused_and_resumed_on_its_page(
    seat: ApiSeat, screen: Screen, clis: dict[str, RealCli]
) -> None:
    project = Project(
        directory=str(seat.work),
        claude=clis["2.1.325"].command[-1],
        env=isolated_env(seat.home, seat.model.url),
    )
    nightly = Schedule(
        name="nightly",
        prompt="Run the tests of {date}.",
        project="app",
        cron="30 3 * * 1-5",
        timezone="Europe/Berlin",
        owner="ada",
    )
    seat.deck.take(Settings(projects={"app": project}, schedules=(nightly,)))
    seat.model.enqueue("All tests pass.")

    page = screen.page
    await page.get_by_role("navigation", name="Pages").get_by_text("Schedules").click()
    card = page.get_by_role("region", name="nightly")
    await expect(card).to_contain_text("cron 30 3 * * 1-5 Europe/Berlin · next: ")
    await expect(card).to_contain_text("Last: never")
    await card.get_by_role("button", name="Run now").click()
    session = await until_last(seat, "done")
    assert (await seat.ada.get(f"sessions/{session}"))["by"] == "ada"
    await page.get_by_role("button", name="Reload").click()
    await expect(card.get_by_role("link", name="done")).to_have_attribute("href", f"/s/{session}")
    await card.get_by_role("button", name="Pause").click()
    await expect(card).to_contain_text("next: paused by the owner")
    await card.get_by_role("button", name="History").click()
    await expect(card.get_by_role("table").get_by_role("row")).to_have_count(2)
    await screen.check_access()
    await screen.shot("schedules")
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(card.get_by_role("button", name="Resume")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await screen.check_access()
    await screen.shot("schedules-phone")
    await card.get_by_role("button", name="Resume").click()
    await expect(card.get_by_role("button", name="Pause")).to_be_visible()
    await card.get_by_role("link", name="done").first.click()
    await screen.hears("All tests pass.")
