"""The sessions of a loop are one row; its page pauses, resumes and stops it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from playwright.async_api import expect

from quarterdeck.testing import Gate, RealCli, isolated_env, reply
from support.apart import apart
from support.api_client import ApiSeat
from support.bounds import SECONDS
from support.browser import Screen, serving

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.fixture(scope="module")
async def house(
    clis: dict[str, RealCli], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiSeat]:
    """A service of its own: loops have a token, which pages list."""
    async with apart(serving(clis, tmp_path_factory)) as made:
        yield made


async def until_state(seat: ApiSeat, state: str) -> None:
    with anyio.fail_after(SECONDS):
        while (await seat.ada.get("loops"))["loops"][0]["state"] != state:  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def test_a_loop_is_one_row_and_is_paused_and_stopped_on_its_page(
    seat: ApiSeat, screen: Screen, clis: dict[str, RealCli]
) -> None:
    seat.model.enqueue("one", reply("two", Gate("second")), reply("three ", Gate("third")))
    env = isolated_env(seat.home, seat.model.url)
    session = {
        "directory": str(seat.work),
        "claude": clis["2.1.325"].command[-1],
        "env": env,
    }
    spec = {"task": "Mend <b>it</b>.", "directory": str(seat.work)}
    await seat.ada.post("loops", spec=spec, session=session)
    await seat.model.wait_at_gate("second", timeout=SECONDS)

    page = screen.page
    fleet = page.get_by_role("navigation", name="All sessions")
    row = fleet.get_by_role("listitem").filter(has_text="2 sessions")
    await expect(row).to_have_count(1)
    await expect(row.get_by_role("link").first).to_contain_text("Mend <b>it</b>.")
    await row.get_by_text("Turns of the loop").click()
    await expect(row.get_by_role("link", name="turn 1")).to_be_visible()
    await expect(row.get_by_role("link", name="turn 2")).to_be_visible()

    await page.get_by_role("link", name="Loops").click()
    card = page.get_by_role("region", name="Mend")
    await expect(card).to_contain_text("1 turn of at most 20")
    await screen.check_access()
    await card.get_by_role("button", name="Pause").click()
    seat.model.release("second")
    await until_state(seat, "paused")
    await page.get_by_role("button", name="Reload").click()
    await expect(card).to_contain_text("2 turns of at most 20")
    await card.get_by_role("button", name="Resume").click()
    await seat.model.wait_at_gate("third", timeout=SECONDS)
    await page.get_by_role("button", name="Reload").click()
    await card.get_by_role("button", name="Stop").click()
    await until_state(seat, "stopped")
    await page.get_by_role("button", name="Reload").click()
    await expect(card).to_contain_text("It was stopped by the owner.")
    await card.get_by_role("button", name="Report").click()
    await expect(card.get_by_role("heading", name="Loop: Mend")).to_be_visible()
    await screen.shot("loops")
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(card.get_by_role("button", name="Report")).to_be_visible()
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    await screen.shot("loops-phone")
