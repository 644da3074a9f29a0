"""Escape closes what is open, and interrupts a turn only when nothing is."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import Text, reply
from support.api_client import ApiSeat
from support.browser import PHONE, Screen

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_escape_closes_menus_and_fields_first_and_then_interrupts(
    seat: ApiSeat, screen: Screen
) -> None:
    (seat.work / "notes.md").write_text("some notes\n")
    session = await seat.create("ready")
    await seat.turn_ended(session)
    page, write = screen.page, screen.composer
    await screen.open(session)
    await screen.hears("ready")
    await seat.send(session, reply(Text("so and so ", times=3000, delay=0.02)))
    await expect(screen.story.locator(".markdown-prose[data-live]")).to_be_visible()
    works = page.locator(".session-header-bar [data-tone]", has_text="working")

    menu = page.get_by_role("listbox", name="Suggestions")
    await write.press_sequentially("/comp")
    await expect(menu).to_be_visible()
    await write.press("Escape")
    await expect(menu).to_have_count(0)
    await expect(write).to_have_value("/comp")
    await write.press_sequentially("a")
    await expect(menu).to_have_count(0)  # of this word it stays closed
    await write.fill("look at @not")
    await expect(menu).to_be_visible()
    await write.press("Escape")
    await expect(menu).to_have_count(0)

    more, opener = page.get_by_role("menu"), page.get_by_role("button", name="More", exact=True)
    await opener.click()
    await expect(more.get_by_role("menuitem", name="Rename")).to_be_visible()
    await screen.shot("escape-more")
    await page.keyboard.press("Escape")
    await expect(more).to_have_count(0)
    await expect(opener).to_be_focused()
    await opener.press("Enter")
    await page.keyboard.press("ArrowDown")
    await expect(more.get_by_role("menuitem", name="Fork")).to_be_focused()
    await screen.story.click(position={"x": 5, "y": 5})
    await expect(more).to_have_count(0)
    await opener.click()
    await more.get_by_role("menuitem", name="Rename").click()
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Name", exact=True)).to_have_count(0)

    await write.fill("later")
    await write.press("Enter")
    queue = page.get_by_role("list", name="Queued prompts")
    await queue.get_by_role("button", name="Edit").click()
    await expect(queue.get_by_label("Edit prompt")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(queue.get_by_label("Edit prompt")).to_have_count(0)
    await queue.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="New session").first.click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(works).to_be_visible()
    assert not seat.stream.of(session, "turn.ended")[1:]

    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await opener.click()
    await screen.shot("escape-more-phone")
    await page.keyboard.press("Escape")
    await write.focus()
    await write.press("Escape")
    await expect(screen.story.locator(".entry-turn[data-failed]")).to_be_visible()
    await seat.stop(session)
