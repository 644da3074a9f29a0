"""Take pictures of the whole web app: `make screens`, or `python -m tools.screens [FOLDER]`.

It runs the sessions of `tools.web_views` in a temporary folder, opens each page, card, panel and
dialog of that table at the sizes of a phone, a laptop and a desktop, light and dark, in headless
Chromium, and puts all pictures into contact sheets. No real CLI, no account and no network is used.
Build the web app first: `make deck`.
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
from tools.web_views import VIEWS, Deck, Group, View, open_view, running_views
from tools.web_views import settle as settle

from quarterdeck.fronts.http import login_link
from quarterdeck.service.service import Service

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / ".cache" / "screens" / "pages"
SHEET = "contact-sheet"
ROWS = 24
"""Of one sheet: Chromium takes no picture that is higher than 16,384 pixels."""
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


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description="Take pictures of every page of the web app.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", help="views with this word in their name")
    parser.add_argument("--group", choices=list(Group), action="append")
    parser.add_argument("--theme", choices=THEMES, action="append")
    parser.add_argument("--size", choices=[size.name for size in SIZES], action="append")
    given = parser.parse_args()
    sizes = [size for size in SIZES if not given.size or size.name in given.size]
    views = [
        view
        for view in VIEWS
        if given.only in view.name and (not given.group or view.group in given.group)
    ]
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    anyio.run(_screens, folder, views, sizes, given.theme or THEMES)


async def _screens(
    folder: Path, views: Sequence[View], sizes: Sequence[Size], themes: Sequence[Theme]
) -> None:
    with tempfile.TemporaryDirectory(prefix="quarterdeck-screens-") as place:
        async with running_views(Path(place)) as deck, chromium() as browser:
            for touch in (True, False):
                if wanted := [size for size in sizes if size.touch is touch]:
                    await _take_all(browser, deck, folder, views, wanted, themes)
    async with chromium() as browser:
        sheets = await _make_sheets(browser, folder)
    print(f"The pictures are in {folder}; all of them: {', '.join(map(str, sheets))}")


async def _take_all(
    browser: Browser,
    deck: Deck,
    folder: Path,
    views: Sequence[View],
    sizes: Sequence[Size],
    themes: Sequence[Theme],
) -> None:
    """Each view is loaded once, and then shown at each size and in each theme."""
    first = sizes[0]
    async with logged_in(browser, deck.service, first, themes[0]) as page:
        await _login(page, deck.empty)
        for view in views:
            if view.narrow and not first.touch:
                continue
            await page.set_viewport_size({"width": first.width, "height": first.height})
            try:
                await open_view(page, deck, view)
            except Exception as error:
                raise RuntimeError(f"{view.name} cannot be shown: {error}") from error
            for size in sizes:
                await page.set_viewport_size({"width": size.width, "height": size.height})
                for theme in themes:
                    await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                    await settle(page)
                    await page.screenshot(path=folder / f"{view.name}-{size.name}-{theme}.png")


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
        await _login(page, service)
        yield page
    finally:
        await context.close()


async def _login(page: Page, service: Service) -> None:
    await page.goto(login_link(service.address, service.access.make_code("ada")))
    await page.wait_for_url(f"{service.address}/")


async def _make_sheets(browser: Browser, folder: Path) -> list[Path]:
    """All pictures on a page, as HTML and as pictures."""
    rows = [row for view in VIEWS if (row := _row(folder, view.name))]
    style = (
        "body{margin:16px;font:14px sans-serif;background:#777}h2{margin:16px 0 4px;color:#fff}"
        "div{display:flex;gap:8px;align-items:start}img{height:300px;width:auto;display:block}"
    )
    head = f"<!doctype html><meta charset=utf-8><title>Quarterdeck</title><style>{style}</style>"
    page = await browser.new_page(viewport={"width": 2540, "height": 1000})
    sheets = []
    for number, part in enumerate(_parts(rows)):
        name = SHEET if number == 0 else f"{SHEET}-{number + 1}"
        page_file, sheet = folder / f"{name}.html", folder.parent / f"{name}.png"
        page_file.write_text(head + "".join(part))
        await page.goto(page_file.as_uri())
        await page.screenshot(path=sheet, full_page=True)
        sheets.append(sheet)
    return sheets


def _row(folder: Path, name: str) -> str:
    pictures = [f"{name}-{size.name}-{theme}.png" for theme in THEMES for size in SIZES]
    shown = "".join(
        f'<a href="{file}"><img src="{file}" alt="{html.escape(file)}"></a>'
        for file in pictures
        if (folder / file).exists()
    )
    return f"<section><h2>{html.escape(name)}</h2><div>{shown}</div></section>" if shown else ""


def _parts(rows: Sequence[str]) -> list[Sequence[str]]:
    return [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]


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
