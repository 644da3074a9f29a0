"""Take the pictures of the web app for the README: `python -m tools.picture_of_deck`.

It runs the scenes of `quarterdeck demo` in a folder that is removed at the end, and takes two
screenshots with the headless Chromium of the browser tests: a session that waits for a permission,
and the review of changes, in dark. No real CLI, no account and no network is used. Build the web
app first: `make deck`.

The scenes are fixed and the folder has a fixed name, so that two pictures of the same version
differ only in their times.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import anyio
from playwright.async_api import Page, expect
from tools.screens import Size, chromium, logged_in, settle

from quarterdeck.cli.hub.demo import running_scenes

PROJECT = Path(__file__).resolve().parents[1]
PICTURES = PROJECT / "docs" / "pictures"
FOLDER = Path("/tmp/quarterdeck-picture")
"""Its path is in the picture, so it is always the same."""
SIZE = Size("picture", 1280, 800)
SECONDS = 60.0


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of the web app.")
    parser.add_argument("folder", nargs="?", type=Path, default=PICTURES)
    folder: Path = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    FOLDER.mkdir(mode=0o700)  # fails if another run uses it
    try:
        anyio.run(_pictures, folder)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("deck.png", "deck-changes.png"):
        print(f"{folder / name}: {(folder / name).stat().st_size:,} bytes")


async def _pictures(folder: Path) -> None:
    expect.set_options(timeout=SECONDS * 1000)
    async with running_scenes(FOLDER, 0) as service, chromium() as browser:
        async with logged_in(browser, service, SIZE, "light") as page:
            await page.goto(f"{service.address}/s/demo-checkout")
            await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
            await expect(page.locator("[data-code-block] .code-hue").first).to_be_visible()
            await _take(page, folder / "deck.png")
        async with logged_in(browser, service, SIZE, "dark") as page:
            await page.goto(f"{service.address}/changes/demo-changes")
            await expect(page.get_by_text("group_1.py").first).to_be_visible()
            await _take(page, folder / "deck-changes.png")


async def _take(page: Page, file: Path) -> None:
    await settle(page)
    await page.screenshot(path=file)


if __name__ == "__main__":
    main()
