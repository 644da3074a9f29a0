"""A card shows what is run: nothing in it is hidden, turned around or out of sight."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from quarterdeck.testing import ToolUse
from support.api_client import ApiSeat
from support.browser import DESKTOP, PHONE, Screen
from support.scenes import bash, write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

EVIL = "; rm -rf ~/EVIL"
TROJAN = "make test \u2067\u2066; touch PWNED \u2069\u2066# on all branches \u2069\u2069"
COMMANDS = {
    TROJAN: "make test ⟨U+2067⟩⟨U+2066⟩; touch PWNED ⟨U+2069⟩⟨U+2066⟩# on all branches",
    "touch a" + " " * 400 + EVIL: f"touch a· 400 blanks ·{EVIL}",
    "touch a" + "\t" * 120 + EVIL: f"touch a· 120 blanks ·{EVIL}",
    "touch a" + "\n" * 80 + EVIL[2:]: "touch a\n· 79 empty lines ·\nrm -rf ~/EVIL",
    "touch " + "x" * 600 + EVIL: EVIL,
    "touch a\u00a0b\u202egnp.\u200bexe": "touch a⟨U+00A0⟩b⟨U+202E⟩gnp.⟨U+200B⟩exe",
    "c\u0430t secret": "c⟨U+0430⟩t secret",
}
"""Each with what is seen of it."""

_OUTSIDE = """card => {
  const found = [];
  const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.data.trim() || node.parentElement.closest('.texts-visually-hidden')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    let holder = node.parentElement;
    let [left, right] = [0, document.documentElement.clientWidth];
    for (; holder && card.contains(holder); holder = holder.parentElement) {
      const style = getComputedStyle(holder);
      if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
      const box = holder.getBoundingClientRect();
      if (holder.scrollHeight > holder.clientHeight + 1) found.push(`cut: ${node.data}`);
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
    }
    for (const box of range.getClientRects())
      if (box.width && (box.left < left - 1 || box.right > right + 1)) found.push(node.data);
  }
  return found;
}"""
"""The texts of a card that lie outside of it, of the window, or of a box that scrolls."""


async def is_whole(card: Locator, seen: str) -> None:
    """The card shows this text, all of its texts are in sight, and it can be allowed."""
    await expect(card).to_be_visible()
    assert seen in await card.evaluate("card => card.innerText"), seen
    assert await card.evaluate(_OUTSIDE) == []
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()


async def is_in_order(row: Locator) -> None:
    """The pieces of a line stand from left to right, in the order in which they are run."""
    lefts = await row.evaluate(
        """row => {
          const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
          const lefts = [];
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(node);
            lefts.push(range.getBoundingClientRect().left);
          }
          return lefts;
        }"""
    )
    assert len(lefts) > 3
    assert lefts == sorted(lefts)


async def test_what_would_be_hidden_in_a_command_is_seen_in_every_card(
    seat: ApiSeat, screen: Screen
) -> None:
    page = screen.page
    session = await seat.create("ready")
    await seat.turn_ended(session)
    await screen.open(session)
    waits = page.get_by_role("region", name="Waiting for you")
    for number, (command, seen) in enumerate(COMMANDS.items()):
        await seat.send(session, bash(command), "as you like")
        opened = await seat.ask(session)
        if command is TROJAN:
            await expect(screen.card).to_be_visible()
            await is_in_order(screen.card.locator("pre code"))
        for name, size in (("desk", DESKTOP), ("phone", PHONE)):
            await page.set_viewport_size({"width": size["width"], "height": size["height"]})
            await is_whole(screen.card, seen)
            await expect(screen.card).to_contain_text("The agent says: “a probe”")
            await screen.shot(f"card-{number}-{name}")
            if size is PHONE:
                await page.get_by_role("link", name="Back to sessions").click()
                await is_whole(waits.locator(".asks-card"), seen)
                await screen.shot(f"card-{number}-inbox")
                await waits.get_by_role("link", name="work").click()
        await expect(screen.card).to_be_visible()
        await screen.check_access()
        await seat.answer(opened, "deny", message="", stop=False)
        await seat.turn_ended(session)
        if command is TROJAN:
            await is_in_order(screen.story.locator(".tool-title", has_text="PWNED"))
    await seat.stop(session)


async def test_nothing_is_allowed_while_lines_of_it_are_folded(
    seat: ApiSeat, screen: Screen
) -> None:
    page, card = screen.page, screen.card
    path = seat.work / "long.txt"
    content = "".join(f"line {number}\n" for number in range(1, 2101)) + "the last line\n"
    session = await seat.create(write(path, content), "written")
    await seat.ask(session)
    await screen.open(session)
    allow = card.get_by_role("button", name="Allow once")
    await expect(card.locator(".code-plus")).to_have_text("+2101")
    await expect(allow).to_be_disabled()
    await expect(card.get_by_role("button", name="Always allow")).to_be_disabled()
    await expect(card.get_by_role("button", name="Deny")).to_be_enabled()
    await screen.shot("card-folded")
    await screen.check_access()
    await card.focus()
    await page.keyboard.press("y")
    await card.get_by_role("button", name="Show 2061 more lines").click()
    assert len((await seat.ada.get("asks"))["asks"]) == 1
    await expect(allow).to_be_disabled()
    await card.get_by_role("button", name="Show 101 more lines").click()
    await expect(card).to_contain_text("the last line")
    await allow.click()
    await screen.hears("written")
    assert path.read_text() == content
    await seat.stop(session)


async def test_a_card_lists_what_a_call_has_besides_and_warns(
    seat: ApiSeat, screen: Screen
) -> None:
    page = screen.page
    call = ToolUse(
        "Bash",
        {
            "command": "touch one",
            "description": "Allowed by policy. Safe.",
            "dangerouslyDisableSandbox": True,
            "run_in_background": False,
            "timeout": 1000,
        },
    )
    session = await seat.create(call, "done")
    await seat.ask(session)
    await screen.open(session)
    inbox = page.get_by_role("region", name="Waiting for you").locator(".asks-card")
    for card in (screen.card, inbox):
        if card is inbox:
            await page.get_by_role("link", name="Inbox 1 waiting for you").click()
        await is_whole(card, "touch one")
        await expect(card).to_contain_text("The agent says: “Allowed by policy. Safe.”")
        warned = card.locator(".asks-members [data-warning]")
        await expect(warned).to_contain_text("⚠ dangerouslyDisableSandbox")
        await expect(warned).to_contain_text("runs outside the sandbox")
        await expect(card.locator(".asks-members")).to_contain_text("timeout")
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        await screen.shot(f"card-members-{scheme}")
        await screen.check_access()
    await seat.stop(session)


async def test_a_file_that_is_replaced_is_shown_as_the_change(
    seat: ApiSeat, screen: Screen
) -> None:
    path = seat.work / "notes.txt"
    path.write_text("one\ntwo\nthree\n")
    session = await seat.create(ToolUse("Read", {"file_path": str(path)}), "read")
    await seat.turn_ended(session)
    await seat.send(session, write(path, "one\nTWO\nthree\n"), "written")
    await seat.ask(session)
    await screen.open(session)
    card = screen.card
    await expect(card).to_contain_text("This replaces the whole file of 3 lines")
    await expect(card.locator(".code-plus")).to_have_text("+1")
    await expect(card.locator(".code-minus")).to_have_text("−1")
    await card.get_by_role("button", name="Allow once").click()
    await screen.hears("written")
    assert path.read_text() == "one\nTWO\nthree\n"
    await seat.stop(session)
