"""The deck under fingers: what is pressed is large enough, and several questions are one choice."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from support.api_client import ApiSeat
from support.browser import PHONE, Screen
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

_SMALL = """() => {
  const size = (one) => (one.closest('label') ?? one).getBoundingClientRect();
  return [...document.querySelectorAll('button, select, textarea, input, summary, nav a, header a')]
    .filter((one) => one.getClientRects().length && !one.closest('[data-part=skip]'))
    .filter((one) => size(one).height < 44 || (/^(INPUT|SELECT|TEXTAREA)$/.test(one.tagName)
      && !/checkbox|radio/.test(one.type) && parseFloat(getComputedStyle(one).fontSize) < 16))
    .map((one) => `${one.tagName} ${one.textContent} ${size(one).height}`);
}"""
"""Controls that a finger would miss, and fields into which a phone would zoom."""


async def test_fingers_select_several_calls_and_answer_them_together(
    seat: ApiSeat, browser: Browser
) -> None:
    sessions = [await seat.create(bash(f"touch {name}"), "done") for name in ("one", "two", "six")]
    for session in sessions:
        await seat.ask(session)
    context = await browser.new_context(
        viewport={"width": PHONE["width"], "height": PHONE["height"]},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    try:
        screen = Screen(await context.new_page(), seat.deck)
        await screen.login()
        page = screen.page
        waits = page.get_by_role("region", name="Waiting for you")
        await expect(waits.locator(".asks-card")).to_have_count(3)
        assert await page.evaluate(_SMALL) == []
        # The list is below all questions, and one tap away.
        row = page.get_by_role("navigation", name="All sessions").get_by_role("link").first
        await expect(row).not_to_be_in_viewport()
        await waits.get_by_role("link", name="To the 3 sessions").tap()
        await expect(row).to_be_in_viewport()
        # Only the frame scrolls: below it there is nothing.
        assert await page.evaluate("document.scrollingElement.scrollHeight") == PHONE["height"]
        await waits.get_by_role("checkbox", name="Select touch one").check()
        await waits.get_by_role("checkbox", name="Select touch six").check()
        both = page.get_by_role("group", name="Answer the selected calls")
        await screen.shot("inbox-several-touch")
        await screen.check_access()
        await both.get_by_role("button", name="Allow 2 calls once").click()
        for session in (sessions[0], sessions[2]):
            await seat.turn_ended(session)
        await expect(waits.locator(".asks-card")).to_have_count(1)
        assert (seat.work / "one").exists()
        assert (seat.work / "six").exists()
        assert not (seat.work / "two").exists()
        assert not screen.complaints, screen.complaints
    finally:
        await context.close()
    for session in sessions:
        await seat.stop(session)
