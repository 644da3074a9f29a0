"""Tabs: each session its own, and what becomes of them when a CLI comes again."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from support.api_client import ApiSeat
from support.browser import Screen

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_cli_that_comes_again_as_another_session_has_a_tab_beside_the_one_that_ended(
    seat: ApiSeat, screen: Screen
) -> None:
    tabs = screen.page.get_by_role("navigation", name="Open sessions")
    first = await seat.create()
    await seat.ada.patch(f"sessions/{first}", name="the first")
    await seat.turn(first, "from the first")
    await screen.open(first)
    await screen.hears("from the first")
    await expect(tabs).to_have_count(0)  # one alone needs no tab
    await seat.stop(first)

    second = await seat.create()
    assert second != first
    await expect(tabs.get_by_role("listitem")).to_have_count(2)
    await seat.ada.patch(f"sessions/{second}", name="the second")
    await seat.turn(second, "from the second")
    await expect(tabs.get_by_role("link").nth(1)).to_contain_text("(unread)")
    await screen.shot("tabs")
    await screen.check_access()
    await tabs.get_by_role("link", name="the second").click()
    await screen.hears("from the second")
    await expect(tabs.locator("[aria-current]")).to_contain_text("the second")

    await screen.page.reload()
    await expect(tabs.get_by_role("listitem")).to_have_count(2)
    await tabs.get_by_role("button", name="Close the tab of the second").click()
    await screen.hears("from the first")
    await expect(tabs).to_have_count(0)
    await seat.stop(second)
