"""The deck over plain http from another machine: the browser gives a page less there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace
from playwright.async_api import Browser, expect

from quarterdeck.config import Settings
from quarterdeck.config.settings import ServerSettings
from quarterdeck.fronts.http import Role, login_link
from quarterdeck.testing import play
from support.api_client import ApiSeat
from support.browser import ELSEWHERE as NAME
from support.browser import PHONE, WIDE, Screen, browsing

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

UNHEEDED = "The Cross-Origin-Opener-Policy header has been ignored"


@pytest.fixture
async def screen(browser: Browser, seat: ApiSeat) -> AsyncIterator[Screen]:
    """A page that came by plain http, logged in as the owner."""
    seat.deck.take(replace(Settings(), server=ServerSettings(hosts=(NAME,))))
    async with browsing(browser, seat.deck, WIDE) as opened:
        code = seat.deck.access.make_code("the owner", Role.OWNER)
        port = seat.deck.address.rpartition(":")[2]
        await opened.page.goto(login_link(f"http://{NAME}:{port}", code))
        yield opened
        # Over plain http a browser takes no notice of one of the hub's headers, and says so.
        opened.complaints[:] = [one for one in opened.complaints if UNHEEDED not in one]


async def test_a_session_is_begun_and_prompted_over_plain_http(
    seat: ApiSeat, screen: Screen
) -> None:
    page = screen.page
    await expect(page.get_by_role("link", name="Quarterdeck")).to_be_visible()
    assert await page.evaluate("[isSecureContext, typeof crypto.randomUUID]") == [
        False,
        "undefined",
    ]
    banner = page.get_by_role("region", name="Connection").filter(has_text="not encrypted")
    await expect(banner).to_be_visible()
    await banner.get_by_role("button", name="Dismiss").click()
    await expect(banner).to_have_count(0)
    await page.get_by_role("button", name="New session").first.click()
    dialog = page.get_by_role("dialog", name="New session")
    await dialog.get_by_label("Directory").fill(str(seat.work))
    await dialog.get_by_label("First prompt").fill(play("begun"))
    await dialog.get_by_role("button", name="Start").click()
    await screen.hears("begun")
    await screen.say(play("prompted"))
    await screen.hears("prompted")
    session = page.url.rpartition("/")[2]
    await seat.stop(session)


async def test_an_error_that_nobody_caught_is_shown_and_can_be_put_away(screen: Screen) -> None:
    page = screen.page
    await expect(page.get_by_role("link", name="Quarterdeck")).to_be_visible()
    faults = page.locator(".page-errors-list")
    await page.evaluate("setTimeout(() => { throw new TypeError('no such thing'); })")
    await expect(faults).to_contain_text("Error in this page: no such thing")
    await page.evaluate("void Promise.reject(new Error('nor this one'))")
    await expect(faults).to_contain_text("nor this one")
    await screen.shot("faults")
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await screen.shot("faults-phone")
    await screen.check_access()
    for _ in range(2):
        await faults.get_by_role("button", name="Dismiss").first.click()
    await expect(faults.locator("p")).to_have_count(0)
    raised = [one for one in screen.complaints if one.startswith("raised: ")]
    assert raised == ["raised: no such thing", "raised: nor this one"]
    screen.complaints.clear()
