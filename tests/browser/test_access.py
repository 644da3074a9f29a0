"""Nobody is kept out: axe finds nothing on any kind of view, light and dark, and keys do it all."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from support.api_client import ApiSeat
from support.browser import Screen
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PAGES = ("/", "/search", "/usage", "/policy", "/machines", "/settings")


async def test_every_page_is_open_to_everybody_in_light_and_dark(
    seat: ApiSeat, screen: Screen
) -> None:
    page = screen.page
    for path in PAGES:
        await page.goto(seat.deck.address + path)
        await expect(page.locator("main h1").first).to_be_visible()
        for scheme in ("light", "dark"):
            await page.emulate_media(
                color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
            )
            await screen.check_access()
            await screen.shot(f"page-{path.strip('/') or 'home'}-{scheme}")


async def test_keys_go_from_question_to_question_and_answer_them(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(bash("touch one"), "done one")
    page = screen.page
    waits = page.get_by_role("region", name="Waits for you")
    await expect(waits).to_contain_text("touch one")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await screen.shot("keys")
    await screen.check_access()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("g")
    await expect(screen.card).to_be_focused()
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await screen.check_access()
    await screen.shot("ask-dark")
    await page.keyboard.press("y")
    await screen.hears("done one")
    assert (seat.work / "one").exists()
    await page.keyboard.press("c")
    await expect(screen.composer).to_be_focused()
    await seat.stop(session)
