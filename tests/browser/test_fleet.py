"""Every session at a glance: filters, pins, names, the archive, what is unread, and tabs."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from quarterdeck.testing import play
from support.api_client import ApiSeat
from support.browser import Screen, browsing
from support.imports import leave
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_sessions_are_found_filtered_pinned_renamed_and_put_away(
    seat: ApiSeat, screen: Screen
) -> None:
    for folder in ("/home/ann/shop", "/home/ann/docs", "/home/ann/playground"):
        leave(seat.home, folder)
    taken = (await seat.ada.post("import"))["sessions"]
    assert len(taken) == 3
    session = await seat.create("one thing")
    await seat.turn_ended(session)
    page = screen.page
    fleet = page.get_by_role("navigation", name="All sessions")
    rows = fleet.locator(".sidebar-row")
    await expect(rows).to_have_count(4)
    await expect(fleet.get_by_role("heading", name="shop")).to_be_visible()
    here = rows.filter(has=page.get_by_role("link", name="work"))
    await expect(here).to_contain_text("done")  # nobody has seen it yet
    await expect(here).to_contain_text("$")
    await expect(here.get_by_text("(unread)")).to_have_count(1)
    await screen.shot("fleet")
    await screen.check_access()

    await page.get_by_label("Filter sessions").fill("ann docs")
    await expect(rows).to_have_count(1)
    await page.get_by_label("Filter sessions").fill("nothing like it")
    await expect(fleet).to_contain_text("No sessions match the filter.")
    await page.get_by_label("Filter sessions").fill("")
    await page.get_by_role("button", name="Pin Prompt 0 in /home/ann/playground").click()
    await expect(fleet.get_by_role("heading").first).to_have_text("Pinned")
    await page.reload()
    await expect(fleet.get_by_role("heading").first).to_have_text("Pinned")

    await screen.open(session)
    await expect(here.get_by_text("(unread)")).to_have_count(0)
    await expect(here).to_contain_text("idle")
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("menuitem", name="Rename").click()
    await page.get_by_label("Name", exact=True).fill("The one that works")
    await page.get_by_label("Name", exact=True).press("Enter")
    await expect(page.get_by_role("heading", name="The one that works")).to_be_visible()
    await expect(fleet.get_by_role("link", name="The one that works")).to_be_visible()
    await seat.stop(session)
    await expect(page.locator(".session-header-bar")).to_contain_text("ended")
    await page.get_by_label("More", exact=True).click()
    await screen.shot("session-more")
    await page.get_by_role("menuitem", name="Archive").click()
    await expect(rows).to_have_count(3)
    await page.get_by_label("Sessions to show").select_option("Archived")
    await expect(rows).to_have_count(1)
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("menuitem", name="Unarchive").click()
    await page.get_by_label("Sessions to show").select_option("All")
    await expect(rows).to_have_count(4)
    await screen.say(play("awake again"))
    await screen.hears("awake again")
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("menuitem", name="Fork").click()
    await expect(rows).to_have_count(5)
    await page.wait_for_url(lambda url: url.rpartition("/s/")[2] not in ("", session))
    await screen.say(play("from the fork"))
    await screen.hears("from the fork")


async def test_on_a_phone_one_goes_from_the_list_to_a_session_and_back(
    seat: ApiSeat, phone: Screen
) -> None:
    session = await seat.create(bash("touch one"), "done one")
    page = phone.page
    waits = page.get_by_role("region", name="Waiting for you")
    await expect(waits).to_contain_text("touch one")
    await phone.shot("phone-fleet")
    await phone.check_access()
    await waits.get_by_role("link", name="work").click()
    await expect(phone.card).to_contain_text("touch one")
    await phone.shot("phone-ask")
    await phone.check_access()
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not await page.evaluate(wide)
    await phone.card.get_by_role("button", name="Allow once").click()
    await phone.hears("done one")
    await phone.say(play("said on a phone"))
    await phone.hears("said on a phone")
    await phone.shot("phone-session")
    await page.get_by_role("button", name="Panels").click()
    await expect(page.get_by_role("tabpanel")).to_be_visible()
    await phone.shot("phone-panel")
    await page.get_by_role("button", name="Close panel").click()
    await page.get_by_role("link", name="Back to sessions").click()
    await expect(page.locator(".sidebar-row .sidebar-title", has_text="work")).to_be_visible()
    await seat.stop(session)


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
    await tabs.get_by_role("button", name="Close tab the second").click()
    await screen.hears("from the first")
    await expect(tabs).to_have_count(0)
    await seat.stop(second)


async def test_who_is_not_logged_in_and_what_is_gone_is_told_what_to_do(
    seat: ApiSeat, screen: Screen, browser: Browser
) -> None:
    async with browsing(browser, seat.deck) as stranger:
        await stranger.page.goto(seat.deck.address)
        await expect(stranger.page.get_by_role("heading")).to_have_text("You are not logged in")
        await expect(stranger.page.locator("main")).to_contain_text("quarterdeck token --login")
        await stranger.shot("stranger")
        await stranger.check_access()
        stranger.complaints.clear()  # the browser tells of the refusal, which was wanted

    leave(seat.home, "/home/ann/old")
    await seat.ada.post("import")
    page = screen.page
    row = page.locator(".sidebar-row", has_text="Prompt 0 in /home/ann/old")
    await row.get_by_role("link").click()
    await screen.hears("Answer 0.")
    gone = page.url
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("menuitem", name="Delete").click()
    sure = page.get_by_role("dialog", name="Delete this session?")
    await expect(sure.get_by_role("button", name="Cancel")).to_be_focused()
    await sure.get_by_role("button", name="Delete").click()
    await page.wait_for_url(seat.deck.address + "/")
    await expect(row).to_have_count(0)
    await page.goto(gone)
    await expect(page.locator("main")).to_contain_text(
        "This session does not exist, or was deleted."
    )
    await screen.shot("session-gone")
    await screen.check_access()
    screen.complaints.clear()  # as above
    await page.get_by_role("link", name="Back to sessions").click()
    await page.wait_for_url(seat.deck.address + "/")
