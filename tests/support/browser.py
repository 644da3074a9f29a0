"""A browser before the deck: Debian's Chromium, driven by Playwright, logged in as a person would.

Above it are the tests in `tests/browser`. What the page writes to its console as an error, and what
it raises, fails the test: a deck that works says nothing there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    async_playwright,
    expect,
)
from playwright.async_api import Error as PlaywrightError

from quarterdeck.cli.deck.serve import Deck
from quarterdeck.fronts.http import Role, login_link
from support.bounds import SECONDS
from support.failures import picture_folder

ROOT = Path(__file__).parent.parent.parent
SCREENS = ROOT / ".cache" / "screens"
"""Screenshots are build output: kept to be looked at, and not in the repository."""
DESKTOP = {"width": 1280, "height": 800}
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
EVERY_RULE = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']"
CONTRAST = "['color-contrast']"
"""The rules that hold for a page's form hold in light and dark alike."""

_AWAY = (
    "net::ERR_",
    "closed before receiving a handshake response",
)

expect.set_options(timeout=SECONDS * 1000)


class Screen:
    """A page that shows the deck."""

    def __init__(self, page: Page, deck: Deck) -> None:
        self.page = page
        self.deck = deck
        self.complaints: list[str] = []
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"raised: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        # That the hub is away is told by the browser itself, and meant by the tests that stop it.
        if message.type == "error" and not any(sign in message.text for sign in _AWAY):
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    async def login(self, role: Role = Role.OWNER) -> None:
        """Open a login link, as a person would."""
        code = self.deck.access.make_code(f"the {role.value}", role)
        await self.page.goto(login_link(self.deck.address, code))
        await self.page.wait_for_url(re.compile(r":\d+/$"))
        await expect(self.page.get_by_role("link", name="Quarterdeck")).to_be_visible()

    async def open(self, session: str) -> None:
        """Show a session."""
        await self.page.goto(f"{self.deck.address}/s/{session}")
        await expect(self.composer).to_be_visible()

    @property
    def composer(self) -> Locator:
        """Where one writes to the agent."""
        return self.page.get_by_label("Write to the agent")

    @property
    def story(self) -> Locator:
        """What was said."""
        return self.page.get_by_role("log")

    @property
    def card(self) -> Locator:
        """The open question in the story."""
        return self.story.locator(".ask[data-state='open']")

    async def keys_act(self) -> None:
        """Wait until keys answer the question that a person is in."""
        await expect(self.page.locator(".ask[data-keys='ready']")).to_have_count(1)

    async def say(self, text: str) -> None:
        """Write to the agent, and send it."""
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def hears(self, text: str) -> None:
        """Wait until the agent has said something; what was asked of it does not count."""
        await expect(self.story.locator(".prose", has_text=text).last).to_be_visible()

    async def shot(self, name: str) -> None:
        """Keep a screenshot, to be looked at."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SCREENS / f"{name}.png")

    async def check_access(self, rules: str = EVERY_RULE) -> None:
        """Have axe look for what keeps somebody from using the page (WCAG A and AA)."""
        # Evaluated, and not added as a script: the page's own rules allow no such script.
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text())
        found = await self.page.evaluate(
            f"axe.run({{runOnly: {rules}, resultTypes: ['violations']}})"
        )
        told = [
            (violation["id"], [node["html"][:160] for node in violation["nodes"]])
            for violation in found["violations"]
        ]
        assert not told, told


@contextlib.asynccontextmanager
async def chromium(*args: str) -> AsyncIterator[Browser]:
    """A browser with nothing of anybody's in it, started with these arguments."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program is not None, "no Chromium: run make test, which installs it"
    # A socket of the browser is in its folder, and a socket's path has no more than 107 letters.
    with tempfile.TemporaryDirectory(prefix="deck-", dir="/tmp") as folder:
        environment = {"HOME": folder, "TMPDIR": folder, "PATH": os.defpath}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=program,
                args=["--no-sandbox", "--disable-dev-shm-usage", *args],
                env={**environment},
            )
            try:
                yield browser
            finally:
                await browser.close()


@contextlib.asynccontextmanager
async def browsing(
    browser: Browser, deck: Deck, size: dict[str, int] | None = None
) -> AsyncIterator[Screen]:
    """One page of this size, which knows nothing of what others in the same browser have done."""
    wanted = size or DESKTOP
    context = await browser.new_context(
        viewport={"width": wanted["width"], "height": wanted["height"]},
        reduced_motion="reduce",  # a colour that is on its way is nobody's contrast
    )
    try:
        screen = Screen(await context.new_page(), deck)
        yield screen
        assert not screen.complaints, screen.complaints
    finally:
        await _keep_pictures(context)
        await context.close()


async def _keep_pictures(context: BrowserContext) -> None:
    """After a failure: what each page of it shows, and its text."""
    folder = picture_folder()
    if folder is None:
        return
    for number, page in enumerate(context.pages):
        with contextlib.suppress(PlaywrightError):  # a page that has crashed has no picture
            await page.screenshot(path=folder / f"page-{number}.png")
            (folder / f"page-{number}.txt").write_text(await page.inner_text("body"))
