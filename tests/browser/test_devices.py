"""Several devices of one person, and a link to one session for somebody else."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from support.api_client import ApiSeat
from support.browser import PHONE, Screen, browsing

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_phone_is_logged_in_by_a_link_and_what_was_typed_pinned_and_read_is_there(
    seat: ApiSeat, screen: Screen, browser: Browser
) -> None:
    session = await seat.create("ready")
    await seat.turn_ended(session)
    page = screen.page
    await page.goto(f"{seat.deck.address}/settings")
    device = page.get_by_role("region", name="Another device")
    await device.get_by_role("button", name="Make a login link").click()
    await expect(device.get_by_role("img", name="QR code of the login link")).to_be_visible()
    await expect(device).to_contain_text("works only on this machine")
    link = await device.locator("code[data-secret]").inner_text()
    encryption = page.get_by_role("region", name="Encryption")
    await expect(encryption).to_contain_text("comes from this machine")
    await expect(encryption).to_contain_text("quarterdeck serve --host 0.0.0.0 --tls auto")
    hub = page.get_by_role("region", name="The hub")
    await hub.get_by_role("button", name="Check the hub's machine").click()
    await expect(hub.get_by_role("listitem").first).to_be_visible()
    access = page.get_by_role("row").filter(has_text="this browser")
    await expect(access).to_have_count(1)
    await screen.shot("settings-devices")
    await screen.check_access()

    await screen.load(session)
    await screen.composer.fill("typed at the desk")
    async with browsing(browser, seat.deck, PHONE) as phone:
        await phone.page.goto(link)
        await phone.page.wait_for_url(re.compile(r":\d+/$"))
        async with page.expect_response(re.compile(r"/api/preferences")):
            await screen.composer.fill("typed at the desk, and more")
        await phone.load(session)
        await expect(phone.composer).to_have_value("typed at the desk, and more")
        await phone.shot("draft-phone")
        # What is typed at both is joined, and nothing is lost.
        async with phone.page.expect_response(re.compile(r"/api/preferences")):
            await phone.composer.fill("typed at the desk, and more; then at the phone")
        await page.reload()
        await expect(screen.composer).to_have_value(
            "typed at the desk, and more; then at the phone"
        )
        await phone.page.goto(f"{seat.deck.address}/settings")
        await expect(phone.page.get_by_role("region", name="Another device")).to_be_visible()
        await expect(phone.page.get_by_role("row").filter(has_text="this browser")).to_be_visible()
        wide = await phone.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"]
        await phone.shot("settings-phone")
    await screen.composer.fill("")
    await seat.stop(session)


async def test_a_link_shows_one_session_to_a_browser_without_a_login_until_it_is_revoked(
    seat: ApiSeat, screen: Screen, browser: Browser
) -> None:
    session = await seat.create("what everybody may read")
    await seat.turn_ended(session)
    await screen.open(session)
    page = screen.page
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Share by a link").click()
    dialog = page.get_by_role("dialog", name="Share by a link")
    await dialog.get_by_label("For whom").fill("Bob")
    await screen.shot("share-dialog")
    await screen.check_access()
    await dialog.get_by_role("button", name="Make the link").click()
    link = await dialog.locator("code[data-secret]").inner_text()
    async with browsing(browser, seat.deck, PHONE) as guest:
        await guest.page.goto(link)
        await guest.hears("what everybody may read")
        await expect(guest.page.get_by_text("Read-only. This link works until")).to_be_visible()
        assert await guest.page.get_by_role("textbox").count() == 0
        await guest.shot("shared-phone")
        await guest.check_access()
        assert not guest.complaints, guest.complaints
        # What happens meanwhile is shown without a stream.
        await seat.turn(session, "said later")
        await guest.hears("said later")
        await page.goto(f"{seat.deck.address}/settings")
        await page.get_by_role("button", name="Revoke link Bob").click()
        await expect(guest.page.get_by_text("has expired or was revoked")).to_be_visible()
        guest.complaints.clear()  # the browser tells of the refusal, which was wanted
    await seat.stop(session)
