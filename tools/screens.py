"""Take pictures of every page of the web app: `make screens`, or `tools/screens.py [FOLDER]`.

It runs the demo of `quarterdeck demo` in a temporary folder, opens each page at the sizes of a
phone, a laptop and a desktop, light and dark, in headless Chromium, and puts all pictures into one
contact sheet. No real CLI, no account and no network is used. Build the web app first: `make deck`.
"""

from __future__ import annotations

import argparse
import html
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
import msgspec
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from quarterdeck.cli.hub.demo import running_scenes
from quarterdeck.fronts.http import login_link
from quarterdeck.service.service import Service

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / ".cache" / "screens" / "pages"
SHEET = "contact-sheet"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
SECONDS = 60.0
Theme = Literal["light", "dark"]


class Size(msgspec.Struct, frozen=True):
    """A kind of screen."""

    name: str
    width: int
    height: int
    touch: bool = False


SIZES = (
    Size("phone", 390, 844, touch=True),
    Size("laptop", 1280, 720),
    Size("desktop", 1680, 1050),
)
THEMES: tuple[Theme, ...] = ("light", "dark")
PAGES = (
    ("inbox", "/"),
    ("tour", "/?tour"),
    ("permission", "/s/demo-checkout"),
    ("plan", "/s/demo-plan"),
    ("questions", "/s/demo-questions"),
    ("finished", "/s/demo-changes"),
    ("changes", "/changes/demo-changes"),
    ("compare", "/compare?s=demo-changes&s=demo-failure"),
    ("todos", "/s/demo-todos"),
    ("failure", "/s/demo-failure"),
    ("search", "/search"),
    ("usage", "/usage"),
    ("loops", "/loops"),
    ("schedules", "/schedules"),
    ("policy", "/policy"),
    ("policy-audit", "/policy?part=audit"),
    ("policy-explain", "/policy?part=explain"),
    ("policy-edit", "/policy?part=edit"),
    ("machines", "/machines"),
    ("settings", "/settings"),
)
DIALOGS = (("new-session", "New session"), ("keys", "Keys"))


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description="Take pictures of every page of the web app.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", help="pages with this word in their name")
    parser.add_argument("--theme", choices=THEMES, action="append")
    parser.add_argument("--size", choices=[size.name for size in SIZES], action="append")
    given = parser.parse_args()
    sizes = [size for size in SIZES if not given.size or size.name in given.size]
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    anyio.run(_screens, folder, given.only, sizes, given.theme or THEMES)


async def _screens(folder: Path, only: str, sizes: Sequence[Size], themes: Sequence[Theme]) -> None:
    with tempfile.TemporaryDirectory(prefix="quarterdeck-screens-") as place:
        async with running_scenes(Path(place), 0) as service, chromium() as browser:
            for size in sizes:
                for theme in themes:
                    await _take_all(browser, service, folder, size, theme, only)
    async with chromium() as browser:
        sheet = await _make_sheet(browser, folder)
    print(f"The pictures are in {folder}; all of them: {sheet}")


async def _take_all(
    browser: Browser, service: Service, folder: Path, size: Size, theme: Theme, only: str
) -> None:
    async with logged_in(browser, service, size, theme) as page:
        for name, path in PAGES:
            if only not in name:
                continue
            await page.goto(f"{service.address}{path}")
            await settle(page)
            if name != "tour":
                await page.evaluate("localStorage.setItem('quarterdeck.tour', 'done')")
            await page.screenshot(path=folder / f"{name}-{size.name}-{theme}.png")
        for name, button in DIALOGS:
            if only not in name:
                continue
            await page.goto(f"{service.address}/")
            await page.get_by_role("button", name=button, exact=True).first.click()
            await page.get_by_role("dialog").wait_for()
            await settle(page)
            await page.screenshot(path=folder / f"{name}-{size.name}-{theme}.png")


async def settle(page: Page) -> None:
    """Wait until a page has loaded what it shows, and has been laid out."""
    await page.wait_for_load_state("networkidle")
    await page.evaluate("document.fonts.ready")
    await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 250)))")


@asynccontextmanager
async def logged_in(
    browser: Browser, service: Service, size: Size, theme: Theme
) -> AsyncIterator[Page]:
    """A page of this size, logged in."""
    context: BrowserContext = await browser.new_context(
        viewport={"width": size.width, "height": size.height},
        has_touch=size.touch,
        is_mobile=size.touch,
        color_scheme=theme,
        reduced_motion="reduce",
    )
    try:
        page = await context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        await page.goto(login_link(service.address, service.access.make_code("ada")))
        await page.wait_for_url(f"{service.address}/")
        yield page
    finally:
        await context.close()


async def _make_sheet(browser: Browser, folder: Path) -> Path:
    """All pictures on one page, as HTML and as a picture."""
    rows = []
    for name in (*(name for name, _ in PAGES), *(name for name, _ in DIALOGS)):
        pictures = [f"{name}-{size.name}-{theme}.png" for theme in THEMES for size in SIZES]
        shown = "".join(
            f'<a href="{file}"><img src="{file}" alt="{html.escape(file)}"></a>'
            for file in pictures
            if (folder / file).exists()
        )
        if shown:
            rows.append(f"<section><h2>{html.escape(name)}</h2><div>{shown}</div></section>")
    style = (
        "body{margin:16px;font:14px sans-serif;background:#777}h2{margin:16px 0 4px;color:#fff}"
        "div{display:flex;gap:8px;align-items:start}img{height:300px;width:auto;display:block}"
    )
    page_file = folder / f"{SHEET}.html"
    page_file.write_text(
        f"<!doctype html><meta charset=utf-8><title>Quarterdeck</title><style>{style}</style>"
        + "".join(rows)
    )
    page = await browser.new_page(viewport={"width": 2540, "height": 1000})
    await page.goto(page_file.as_uri())
    await page.screenshot(path=folder.parent / f"{SHEET}.png", full_page=True)
    return folder.parent / f"{SHEET}.png"


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A headless browser with a profile of its own, which is removed at the end."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        sys.exit("There is no Chromium: run `make test` once, which installs it.")
    # A socket of the browser is in this folder, and its path may have 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="deck-", dir="/tmp") as folder:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=program,
                args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
                env={"HOME": folder, "TMPDIR": folder, "PATH": os.defpath},
            )
            try:
                yield browser
            finally:
                await browser.close()


if __name__ == "__main__":
    main()
