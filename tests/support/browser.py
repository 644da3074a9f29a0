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

import pytest
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

from quarterdeck.fronts.http import Role, login_link
from quarterdeck.service.service import Service
from quarterdeck.testing import RealCli, ScriptedModel
from support.api_client import ApiSeat, api_seat
from support.bounds import SECONDS
from support.clis import VERSIONS
from support.failures import picture_folder
from support.processes import Processes

ROOT = Path(__file__).parent.parent.parent
SCREENS = ROOT / ".cache" / "screens"
"""Screenshots are build output: kept to be looked at, and not in the repository."""
DESKTOP = {"width": 1280, "height": 800}
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
EVERY_RULE = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']"
COLOURS = "['color-contrast', 'link-in-text-block']"
"""What depends on the theme; all other rules are about the form of a page."""

ELSEWHERE = "deck.test"
"""The hub by another name: not loopback by it, which is all that a browser goes by."""
PAGE_KEY = "quarterdeck.page-key"
"""Where a page keeps its half of a login."""
_STILL = "/icon-192.png"
"""A document of the deck's in which nothing runs."""
NO_UNDO = "localStorage.setItem('quarterdeck.undo', '0')"
"""Answers are sent at once: no test waits for the time to undo one, but for the test of that."""
_FORGET = f"""([name, key]) => {{
  localStorage.clear();
  sessionStorage.clear();
  localStorage.setItem(name, key);
  {NO_UNDO};
}}"""
WHOLE = ("chromium", "chromium-browser")
LIGHT = ("chromium-headless-shell", *WHOLE)
"""The first has no window to draw, and loads a page for two thirds of the processor time. It knows
nothing of push.
"""
_AWAY = (
    "net::ERR_",
    "closed before receiving a handshake response",
)

expect.set_options(timeout=SECONDS * 1000)


class Screen:
    """A page that shows the deck."""

    def __init__(self, page: Page, deck: Service) -> None:
        self.page = page
        self.deck = deck
        self.complaints: list[str] = []
        self.fresh = False
        """Whether the deck's first page is shown, and nothing was done there yet."""
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", self._heard)
        page.on("pageerror", self._raised)

    def leave(self) -> None:
        """Hear no more of the page."""
        self.page.remove_listener("console", self._heard)
        self.page.remove_listener("pageerror", self._raised)

    def _raised(self, error: PlaywrightError) -> None:
        self.complaints.append(f"raised: {error}")

    def _heard(self, message: ConsoleMessage) -> None:
        if str(message.location.get("url", "")).endswith(_STILL):
            return  # the browser's own document around a picture: nothing of the deck is there
        # That the hub is away is told by the browser itself, and meant by the tests that stop it.
        if message.type == "error" and not any(sign in message.text for sign in _AWAY):
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    async def login(self, role: Role = Role.OWNER) -> None:
        """Open a login link, as a person would."""
        code = self.deck.access.make_code(f"the {role.value}", role)
        await self.page.goto(login_link(self.deck.address, code))
        await self.page.wait_for_url(re.compile(r":\d+/$"))
        await self.page.evaluate(NO_UNDO)
        await expect(self.page.get_by_role("link", name="Quarterdeck")).to_be_visible()

    async def open(self, session: str) -> None:
        """Show a session: from the deck's first page as a link does, else by its address."""
        if self.fresh and self.page.url == f"{self.deck.address}/":
            self.fresh = False
            await self.page.evaluate("path => history.pushState(null, '', path)", f"/s/{session}")
            await expect(self.composer).to_be_visible()
        else:
            await self.load(session)

    async def load(self, session: str) -> None:
        """Show a session by its address: the page is loaded anew."""
        await self.page.goto(f"{self.deck.address}/s/{session}")
        await expect(self.composer).to_be_visible()

    @property
    def composer(self) -> Locator:
        """Where one writes to the agent."""
        return self.page.get_by_label("Prompt for the agent")

    @property
    def story(self) -> Locator:
        """What was said."""
        return self.page.get_by_role("log")

    @property
    def card(self) -> Locator:
        """The open question in the story."""
        return self.story.locator(".asks-card[data-state='open']")

    async def keys_act(self) -> None:
        """Wait until keys answer the question that a person is in."""
        await expect(self.page.locator(".asks-card[data-keys='ready']")).to_have_count(1)

    async def say(self, text: str) -> None:
        """Write to the agent, and send it."""
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def hears(self, text: str) -> None:
        """Wait until the agent has said something; what was asked of it does not count."""
        await expect(self.story.locator(".markdown-prose", has_text=text).last).to_be_visible()

    async def shot(self, name: str) -> None:
        """Keep a screenshot, to be looked at."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SCREENS / f"{name}.png")

    async def check_access(self, rules: str = EVERY_RULE, within: str = "html") -> None:
        """Have axe look for what keeps people from using the page, or this part of it.

        It looks for everything that it knows, of every level: WCAG A and AA, and best practice.
        """
        # Evaluated, and not added as a script: the page's own rules allow no such script.
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text())
        found = await self.page.evaluate(
            f"part => axe.run(part, {{runOnly: {rules}, resultTypes: ['violations']}})", within
        )
        told = [
            (violation["id"], [node["html"][:160] for node in violation["nodes"]])
            for violation in found["violations"]
        ]
        assert not told, told


@contextlib.asynccontextmanager
async def serving(
    clis: dict[str, RealCli], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiSeat]:
    """The whole service with the newest real CLI, for several tests."""
    newest = clis[VERSIONS[-1]]
    folder = tmp_path_factory.mktemp("house")
    processes = Processes()
    try:
        with pytest.MonkeyPatch.context() as environment:
            async with (
                ScriptedModel() as model,
                api_seat(newest, "runner", model, folder, processes, environment) as made,
            ):
                yield made
    finally:
        processes.end_all()


@contextlib.asynccontextmanager
async def chromium(*args: str, names: tuple[str, ...] = LIGHT) -> AsyncIterator[Browser]:
    """A browser with nothing of anybody's in it: the first of these that there is."""
    found = (shutil.which(name) for name in names)
    program = next((path for path in found if path is not None), None)
    assert program is not None, "no Chromium: run make test, which installs it"
    # A socket of the browser is in its folder, and a socket's path has no more than 107 letters.
    with tempfile.TemporaryDirectory(prefix="deck-", dir="/tmp") as folder:
        environment = {"HOME": folder, "TMPDIR": folder, "PATH": os.defpath}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=program,
                args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", *args],
                env={**environment},
            )
            try:
                yield browser
            finally:
                await browser.close()


@contextlib.asynccontextmanager
async def browsing(
    browser: Browser, deck: Service, size: dict[str, int] | None = None
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


class Desk:
    """One page for test after test: a page in a browser of its own takes seconds of processor time.

    Whoever takes it finds it as a new one: of the size that is wanted, at the deck's first page,
    with nothing remembered but who is logged in. What cannot be undone (a script that every load
    begins with, a clock, a route, a logout) is for a page that is nobody else's (`browsing`).
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None
        self._keys: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def taken(self, deck: Service, size: dict[str, int]) -> AsyncIterator[Screen]:
        """The page, before this deck."""
        if self._page is None:
            context = await self._browser.new_context(reduced_motion="reduce")
            self._page = await context.new_page()
        page = self._page
        screen = Screen(page, deck)
        good = False
        try:
            await page.set_viewport_size({"width": size["width"], "height": size["height"]})
            await page.emulate_media(color_scheme="light", reduced_motion="reduce")
            await self._begin(screen)
            yield screen
            assert not screen.complaints, screen.complaints
            screen.leave()
            # No page looks on while all is cleared, and nothing of this one is written later.
            await page.goto(f"{deck.address}{_STILL}")
            good = picture_folder() is None and page.context.pages == [page]
        finally:
            if not good:
                await self.close()

    async def _begin(self, screen: Screen) -> None:
        page, address = screen.page, screen.deck.address
        if address in self._keys:
            if not page.url.startswith(f"{address}/"):
                await page.goto(f"{address}{_STILL}")
            await page.evaluate(_FORGET, [PAGE_KEY, self._keys[address]])
            await page.goto(f"{address}/")
            await expect(page.get_by_role("link", name="Quarterdeck")).to_be_visible()
        else:
            await screen.login()
            self._keys[address] = await page.evaluate(f"localStorage.getItem('{PAGE_KEY}')")
        screen.fresh = True

    async def close(self) -> None:
        """Put the page away; whoever takes one next gets a new one."""
        page, self._page = self._page, None
        self._keys.clear()
        if page is not None:
            await _keep_pictures(page.context)
            await page.context.close()


async def _keep_pictures(context: BrowserContext) -> None:
    """After a failure: what each page of it shows, and its text."""
    folder = picture_folder()
    if folder is None:
        return
    for number, page in enumerate(context.pages):
        with contextlib.suppress(PlaywrightError):  # a page that has crashed has no picture
            await page.screenshot(path=folder / f"page-{number}.png")
            (folder / f"page-{number}.txt").write_text(await page.inner_text("body"))
