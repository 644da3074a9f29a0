"""The pages beside the sessions, as a person uses them: by their own data, light and dark."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Locator, expect

from quarterdeck.testing import RealCli
from support.apart import apart
from support.api_client import ApiSeat
from support.browser import COLOURS, EVERY_RULE, Screen, serving
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

POLICY = """
[[rule]]
name = "no touching"
verdict = "deny"
tool = "Bash"
"""


HEARD = """new Promise((done) => {
  const look = () => (told.length && tones === 2 ? done() : setTimeout(look, 20));
  look();
})"""
"""Waits in the page until it has told of an agent, by words and by its two tones."""


@pytest.fixture(scope="module")
async def house(
    clis: dict[str, RealCli], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiSeat]:
    """A service of this module's own: what was used and decided is counted here."""
    async with apart(serving(clis, tmp_path_factory)) as made:
        yield made


async def visit(screen: Screen, name: str) -> Locator:
    """Go to a page by its link; gives the page."""
    await screen.page.get_by_role("navigation", name="Pages").get_by_text(name).click()
    page = screen.page.locator("main .layout-page")
    await expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    return page


async def look(screen: Screen, name: str) -> None:
    """Keep a picture of the page, and have axe look at it, in light and in dark."""
    for theme in ("light", "dark"):
        await screen.page.emulate_media(
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",  # a picture half way from light to dark tells nothing
        )
        await screen.shot(f"{name}-{theme}")
        await screen.check_access(COLOURS if theme == "dark" else EVERY_RULE)
    await screen.page.emulate_media(color_scheme="light")


async def worked(seat: ApiSeat) -> str:
    """A session in which something was asked, allowed, done and paid for."""
    session = await seat.create(bash("touch one"), "the walrus was here")
    await seat.ada.patch(f"sessions/{session}", name=f"walrus {session[:8]}")
    await seat.answer(await seat.ask(session), "allow")
    await seat.turn_ended(session)
    return session


async def test_what_was_said_is_searched_and_what_was_used_is_drawn(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await worked(seat)
    page = await visit(screen, "Search")
    await page.get_by_label("Words").fill("walrus -carpenter")
    await page.get_by_label("Kind").select_option("answers")
    await page.get_by_role("button", name="Search").click()
    hits = page.get_by_role("list", name="Results").get_by_role("listitem")
    await expect(hits).to_have_count(1)
    await expect(hits.locator("mark")).to_have_text("walrus")
    await look(screen, "search")
    await page.get_by_label("Words").fill("nowhere-to-be-found")
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_text("No results.")).to_be_visible()
    await page.get_by_label("Words").fill("walrus")
    await page.get_by_label("Kind").select_option("answers")
    await page.get_by_role("button", name="Search").click()
    await hits.get_by_role("link").click()
    await screen.hears("the walrus was here")
    assert f"/s/{session}?m=" in screen.page.url, "the message itself"

    page = await visit(screen, "Usage")
    chart = page.get_by_role("img", name="cost by day")
    await expect(chart.locator("rect")).not_to_have_count(0)
    await look(screen, "usage")
    await page.get_by_label("Measure").select_option("tokens")
    await page.get_by_label("Group by").select_option("model")
    rows = page.get_by_role("row").filter(has_text="claude")
    await expect(rows.first).to_be_visible()
    await page.get_by_label("Group by").select_option("session")
    await expect(page.get_by_role("row").filter(has_text=f"walrus {session[:8]}")).to_have_count(1)
    await look(screen, "usage-session")


async def test_the_policy_is_explained_audited_and_replayed(seat: ApiSeat, screen: Screen) -> None:
    session = await worked(seat)
    await seat.ada.post("policy/grants", rules=["Bash(npm test:*)", f"Read({'/long' * 20}/**)"])
    page = await visit(screen, "Policy")
    grants = page.get_by_role("region", name="Grants")
    await expect(grants).to_contain_text("Bash(npm test:*)")
    await look(screen, "policy-rules")
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    revoke = await grants.get_by_role("button", name="Revoke").bounding_box()
    assert revoke is not None
    assert revoke["x"] + revoke["width"] <= 390, "a finger finds it without scrolling sideways"
    await screen.page.set_viewport_size({"width": 1280, "height": 800})
    await grants.get_by_role("button", name="Revoke").click()
    await expect(grants).to_contain_text("No grants yet.")

    await page.get_by_role("tab", name="Explain").click()
    await page.get_by_role("combobox", name="Policy").select_option("read-only")
    await page.get_by_label("Command, file").fill("touch one && git status")
    await page.get_by_role("button", name="Explain").click()
    told = page.get_by_role("region", name="Explanation")
    await expect(told.locator(".policy-verdict").first).to_have_text("deny")
    await expect(told).to_contain_text("touch one")
    await look(screen, "policy-explain")

    await page.get_by_role("tab", name="Audit log").click()
    await expect(page.get_by_role("status")).to_contain_text("none changed")
    entry = page.get_by_role("row").filter(has_text="touch one").filter(has_text="ada")
    await look(screen, "policy-audit")
    await page.get_by_label("Session", exact=True).select_option(session)
    await expect(entry).to_have_count(2)  # her answer, and the decision: both name the call
    await expect(entry.locator(".policy-verdict")).to_have_text(["allow", "allow"])

    await page.get_by_role("tab", name="Replay").click()
    await page.get_by_label("Policy to test").fill("no = policy = at all")
    await page.get_by_role("button", name="Run replay").click()
    await expect(page.get_by_role("alert")).to_contain_text("line 1")
    await page.get_by_label("Policy to test").fill(POLICY)
    await page.get_by_role("button", name="Run replay").click()
    result = page.get_by_role("region", name="Result of the replay")
    await expect(result.get_by_role("row").filter(has_text="touch one")).to_contain_text("deny")
    await look(screen, "policy-replay")

    await page.get_by_role("tab", name="Suggestions").click()
    await expect(page.get_by_text("No suggestions")).to_be_visible()


async def test_machines_settings_and_tokens(seat: ApiSeat, lone_screen: Screen) -> None:
    screen = lone_screen
    page = await visit(screen, "Machines")
    await expect(page.locator(".card-card")).to_contain_text("connected")
    await look(screen, "machines")

    page = await visit(screen, "Settings")
    # What comes from the hub later moves the form that is pressed on below it.
    await expect(page).to_contain_text("Three ways to https")
    await page.get_by_label("Name of the token").fill("a script")
    await page.get_by_label("Role of the token").select_option("program")
    await page.get_by_role("button", name="Create token").click()
    secret = await page.locator("[data-secret]").inner_text()
    assert secret
    tokens = (await seat.ada.get("tokens"))["tokens"]
    assert ("a script", "program") in [(each["name"], each["role"]) for each in tokens]
    await look(screen, "settings")
    await page.get_by_label("Theme").select_option("dark")
    ground = await screen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(14, 18, 23)"
    await page.get_by_label("Theme").select_option("system")
    await page.get_by_role("button", name="Revoke access of a script").click()
    asked = screen.page.get_by_role("dialog", name="Revoke the access of “a script”?")
    await asked.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("row").filter(has_text="a script")).to_have_count(0)
    await page.get_by_role("button", name="Log out").click()
    await screen.page.wait_for_url("**/login")


async def test_every_page_fits_a_phone(seat: ApiSeat, phone: Screen) -> None:
    await worked(seat)
    for name in ("Search", "Usage", "Policy", "Machines", "Settings"):
        await visit(phone, name)
        await phone.page.wait_for_load_state("networkidle")
        await phone.shot(f"phone-{name.lower()}")
        await phone.check_access()
        wide = await phone.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, name
        await phone.page.go_back()


async def test_a_telegram_chat_is_paired_from_a_phone(seat: ApiSeat, phone: Screen) -> None:
    page = await visit(phone, "Settings")
    button = page.get_by_role("button", name="Pair a Telegram chat")
    shown = page.get_by_role("status").locator("code", has_text="/pair")
    codes: list[str] = []
    for _ in range(2):
        await button.click()
        if codes:
            await expect(shown).not_to_have_text(f"/pair {codes[-1]}")
        codes.append((await shown.inner_text()).removeprefix("/pair "))
    await phone.shot("phone-pairing")
    await phone.check_access()
    assert await phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    box = await shown.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    me = await seat.ada.get("whoami")
    for number, code in enumerate(codes):
        made = await seat.ada.post("pairing", code=code, label=f"telegram:{number}")
        assert (made["role"], bool(made["token"])) == (me["role"], True)
    labels = [each["label"] for each in (await seat.ada.get("tokens"))["tokens"]]
    assert {"telegram:0", "telegram:1"} <= set(labels)


async def test_one_who_looks_elsewhere_is_told_that_an_agent_waits(
    seat: ApiSeat, lone_screen: Screen
) -> None:
    screen = lone_screen
    await screen.page.context.grant_permissions(["notifications"])
    await screen.page.add_init_script(
        """
        window.told = []; window.tones = 0;
        window.Notification = class {
          static permission = 'granted';
          static requestPermission = async () => 'granted';
          constructor(title, options) { told.push([title, options.body]); window.last = this; }
        };
        const start = OscillatorNode.prototype.start;
        OscillatorNode.prototype.start = function (at) { tones++; start.call(this, at); };
        Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });
        """
    )
    await screen.page.reload()
    page = await visit(screen, "Settings")
    await page.get_by_label("Notify me when an agent is waiting").check()
    await page.get_by_label("Play a sound").check()
    session = await seat.create(bash("touch one"), "done")
    card = await seat.ask(session)
    await screen.page.evaluate(HEARD)
    assert await screen.page.evaluate("told[0]") == ["work is waiting for you", card["title"]]
    await expect(screen.page).to_have_title("(1) Quarterdeck")
    await screen.page.evaluate("last.onclick()")
    await expect(screen.card).to_contain_text("touch one")
    await seat.answer(card, "allow")
    await seat.turn_ended(session)
    await expect(screen.page).to_have_title("Quarterdeck")
    await seat.stop(session)
