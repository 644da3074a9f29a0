"""Text of an agent that a parser would take minutes for: the page still answers to a person."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import Text, reply
from support.api_client import ApiSeat
from support.browser import Screen

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

HOSTILE = ("*a_ " * 20_000, "[" * 20_000 + "]" * 20_000, "- " * 20_000 + "a")
MOST = 30_000
"""Milliseconds. Parsed as a whole, each of the texts would hold up the page for longer."""


async def test_m13_a_text_that_takes_long_to_parse_does_not_freeze_the_page(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create("ready")
    await seat.turn_ended(session)
    await screen.open(session)
    await screen.hears("ready")
    # A turn that is cut off at its end: the person wants to stop it while the text is shown.
    text = "\n\n".join(("# Before", *HOSTILE, "**After**"))
    await seat.send(session, reply(Text(text), Text(" and on", times=3000, delay=0.05)))
    works = screen.page.locator(".session-header-bar [data-tone]", has_text="working")
    await expect(works).to_be_visible()
    shown = screen.story.locator(".markdown-prose", has_text="and on and on")
    await expect(shown).to_be_visible(timeout=MOST)
    await screen.composer.press_sequentially("later", timeout=MOST)
    await expect(screen.composer).to_have_value("later", timeout=MOST)
    await screen.composer.fill("")
    await screen.composer.press("Escape", timeout=MOST)
    await expect(screen.story.locator(".entry-turn[data-failed]")).to_be_visible(timeout=MOST)
    await seat.turn_ended(session)
    await seat.turn(session, reply(Text(text)))
    await screen.page.reload()
    complete = screen.story.locator(".markdown-prose", has_text="After")
    await expect(complete.locator("strong", has_text="After").last).to_be_attached(timeout=MOST)
    await screen.composer.press_sequentially("again", timeout=MOST)
    await expect(screen.composer).to_have_value("again", timeout=MOST)
    await seat.stop(session)
