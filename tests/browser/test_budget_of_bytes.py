"""What the first view weighs, and what the page may do: checks that need nothing from outside."""

from __future__ import annotations

import json
import re
import struct

import pytest
from bench.deck_weight import first_view, packed_sizes
from playwright.async_api import expect

from quarterdeck.fronts.http import built_web
from support.api_client import ApiSeat
from support.browser import Screen
from support.scenes import bash

LARGEST = 150_000
FONTS = 95_000
"""Beside that: one file for text and one for code. Text is shown before they have come."""


@pytest.mark.heavy  # it weighs the deck, which has to be built first
def test_the_first_view_is_light() -> None:
    deck = built_web()
    assert deck is not None, "the deck is not built: make deck"
    files = first_view(deck)
    assert {file.suffix for file in files} >= {".html", ".js", ".css"}
    sizes = packed_sizes(deck)
    assert sum(sizes.values()) < LARGEST, sizes
    sheets = "".join(file.read_text() for file in files if file.suffix == ".css")
    assert "font-display:swap" in sheets
    fonts = {font.name: font.stat().st_size for font in deck.glob("assets/*-latin-wght-*.woff2")}
    assert len(fonts) == 2
    assert sum(fonts.values()) < FONTS, fonts


@pytest.mark.anyio
@pytest.mark.real_cli
async def test_nothing_leaves_the_hub_and_nothing_breaks_the_pages_rules(
    seat: ApiSeat, lone_screen: Screen
) -> None:
    screen = lone_screen
    asked: list[str] = []
    rules: set[str] = set()
    screen.page.on("request", lambda request: asked.append(request.url))
    screen.page.on(
        "response",
        lambda response: rules.add(response.headers.get("content-security-policy", "none")),
    )
    await screen.page.add_init_script(
        "addEventListener('securitypolicyviolation', (event) =>"
        " console.error('violation: ' + event.violatedDirective + ' ' + event.blockedURI))"
    )
    session = await seat.create(bash("touch one"), "![x](https://example.org/x.png) `code`")
    await screen.open(session)
    await screen.card.get_by_role("button", name="Allow once").click()
    await seat.turn_ended(session)
    for path in ("search", "usage", "policy", "machines", "settings"):
        await screen.page.goto(f"{screen.deck.address}/{path}")
        await expect(screen.page.locator("main .layout-page h1")).to_be_visible()
        await screen.page.wait_for_load_state("networkidle")
    hosts = {url.split("/")[2] for url in asked if url.startswith(("http", "ws"))}
    assert hosts == {screen.deck.address.split("/")[2]}
    # The page itself also allows the one script that is in it, by its hash.
    assert len(rules) == 2
    for policy in rules:
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert re.search(r"script-src 'self'( 'sha256-[\w+/]+=')?;", policy)
    assert not screen.complaints
    await seat.stop(session)


@pytest.mark.anyio
@pytest.mark.real_cli
async def test_the_deck_can_be_installed_as_an_app(screen: Screen) -> None:
    client = await screen.page.context.new_cdp_session(screen.page)
    found = await client.send("Page.getInstallabilityErrors")
    kinds = {error["errorId"] for error in found["installabilityErrors"]}
    assert kinds <= {"in-incognito"}  # which the browser of a test always is
    manifest = await client.send("Page.getAppManifest")
    assert manifest["url"].endswith("/manifest.webmanifest")
    assert not manifest["errors"]
    for icon in json.loads(manifest["data"])["icons"]:
        served = await screen.page.request.get(screen.deck.address + icon["src"])
        assert served.headers["content-type"].startswith(icon["type"])
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", (await served.body())[16:24])
            assert icon["sizes"] == f"{width}x{height}"
    await client.detach()
