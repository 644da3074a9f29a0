"""A session whose CLI begins another conversation: the earlier one has a tab of its own."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import play
from support.api_client import ApiSeat
from support.browser import Screen

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_cleared_conversation_stays_in_a_tab_beside_the_new_one(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create("said before")
    await seat.turn_ended(session)
    await screen.open(session)
    await screen.hears("said before")
    await screen.say("/clear")
    await seat.turn_ended(session)
    await screen.say(play("said after"))
    await screen.hears("said after")
    await expect(screen.story.get_by_text("New conversation")).to_be_visible()

    tabs = screen.page.get_by_role("navigation", name="Open sessions")
    await expect(tabs.get_by_role("link")).to_have_count(2)
    await tabs.get_by_role("link", name="(earlier)").click()
    await expect(screen.story.get_by_text("said before").last).to_be_visible()
    await expect(screen.story.get_by_text("said after")).to_have_count(0)
    await expect(screen.composer).to_have_count(0)
    await screen.page.reload()
    await expect(screen.story.get_by_text("said before").last).to_be_visible()
    await expect(screen.story.get_by_text("said after")).to_have_count(0)

    await screen.page.get_by_role("link", name="Go to the current one").click()
    await screen.hears("said after")
    await expect(screen.composer).to_be_visible()
    await seat.stop(session)


async def test_a_fork_that_is_made_elsewhere_gets_a_tab_beside_its_session(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create("the first")
    await seat.turn_ended(session)
    await screen.open(session)
    await screen.hears("the first")
    made = await seat.ada.post(f"sessions/{session}/fork", name="a copy")
    fork = str(made["session"])
    tabs = screen.page.get_by_role("navigation", name="Open sessions")
    await expect(tabs.get_by_role("link", name="a copy")).to_be_visible()
    await seat.stop(fork)
    await seat.stop(session)
