"""Take the picture of the web app for the README: `python tools/picture_of_deck.py [FILE]`.

It starts a hub on loopback with a data folder that is removed at the end, as `quarterdeck demo`
does, gives it four sessions with scripted agents, and takes a screenshot with the headless Chromium
of the browser tests. No real CLI, no account and no network is used. Build the web app first:
`make deck`.

The scenes are fixed and the folder has a fixed name, so that two pictures of the same version
differ only in their times.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw
from playwright.async_api import Browser, async_playwright, expect

from quarterdeck.fronts.http import Listen, login_link
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, Service, run_service
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command

PROJECT = Path(__file__).resolve().parents[1]
PICTURE = PROJECT / "docs" / "pictures" / "deck.png"
FOLDER = Path("/tmp/quarterdeck-picture")
"""Its path is in the picture, so it is always the same."""
WIDTH, HEIGHT = 1280, 800
SECONDS = 60.0
"""How long a scripted agent lives, and how long each wait for the page may take."""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")

TEST = "npm test -- checkout"
READ = fake.tool_use("Read", {"file_path": "src/checkout.ts"}, "toolu_read")
EDIT = fake.tool_use(
    "Edit",
    {
        "file_path": "src/checkout.ts",
        "old_string": "  return price * 1.19;",
        "new_string": "  return round(price * (1 + taxRate(country)), 2);",
    },
    "toolu_edit",
)
CALL: fake.Line = {"command": TEST, "description": "Run the checkout tests"}


class Scene(msgspec.Struct, frozen=True):
    """One session of the picture: what it is asked, and what its agent does then."""

    name: str
    folder: str
    prompt: str
    steps: tuple[fake.Step, ...]


SCENES = (
    Scene(
        "release notes",
        "shop",
        "Write the release notes for 2.4.",
        (
            fake.say(fake.assistant("The release notes are in `CHANGELOG.md`.")),
            fake.say(fake.result("The release notes are written.", total_cost_usd=0.0831)),
            fake.Hang(),
        ),
    ),
    Scene(
        "docs",
        "handbook",
        "Check every link in the handbook.",
        (
            fake.say(fake.assistant("212 pages to check. I start with the guides.")),
            fake.say(fake.assistant(fake.tool_use("Grep", {"pattern": r"\]\(http"}))),
            fake.Hang(),
        ),
    ),
    Scene(
        "dependencies",
        "shop",
        "Update the dependencies, one commit each.",
        (
            fake.say(fake.assistant("`vite` has a new minor version. I update it first.")),
            fake.say(fake.assistant(fake.tool_use("Bash", {"command": "npm update vite"}))),
            fake.Hang(),
        ),
    ),
    Scene(
        "checkout",
        "shop",
        "The tax is wrong for customers outside Germany. Fix it.",
        (
            fake.say(fake.assistant("I look at how the checkout computes the price.")),
            fake.say(fake.assistant(READ)),
            fake.say(fake.tool_result("export function total(price: number) {", "toolu_read")),
            fake.say(
                fake.assistant(
                    "The rate of **19 %** is written into `total`. I use the customer's country.",
                    EDIT,
                )
            ),
            fake.say(fake.tool_result("The file has been updated.", "toolu_edit")),
            fake.say(fake.assistant("Now I run the tests.")),
            fake.say(fake.assistant(fake.tool_use("Bash", CALL))),
            fake.say(fake.can_use_tool("Bash", CALL)),
            fake.Hang(),
        ),
    ),
)
"""The last one is the session that the picture shows."""


def main() -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description="Take the picture of the web app.")
    parser.add_argument("file", nargs="?", type=Path, default=PICTURE)
    file = parser.parse_args().file.resolve()
    FOLDER.mkdir(mode=0o700)  # fails if another run uses it
    try:
        anyio.run(_picture, file)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    print(f"{file}: {file.stat().st_size:,} bytes")


async def _picture(file: Path) -> None:
    home = FOLDER / "data"
    home.mkdir(mode=0o700)
    try:
        async with run_service(home, ServeOptions(listen=Listen(port=0))) as service:
            shown = [await _start(service, scene) for scene in SCENES][-1]
            async with _chromium() as browser:
                await _take(browser, service, shown, file)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(end_runner, home / RUNNER)


async def _start(service: Service, scene: Scene) -> str:
    """Start a session whose agent plays this scene; gives the session's id."""
    work = FOLDER / scene.folder
    work.mkdir(exist_ok=True)
    script = (fake.Initialize(), fake.Expect("user", timeout=SECONDS, polite=True), *scene.steps)
    program = FOLDER / f"claude-{scene.name.replace(' ', '-')}"
    command = fake_cli_command(script, folder=FOLDER, lifetime=SECONDS)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o700)
    session = scene.name.replace(" ", "-")
    spec = SessionSpec(directory=str(work), name=scene.name, claude=str(program))
    prompt = Raw(msgspec.json.encode(scene.prompt))
    await service.hub.submit(CreateSession(spec=spec, session=session, prompt=prompt, by="ada"))
    return session


async def _take(browser: Browser, service: Service, session: str, file: Path) -> None:
    page = await browser.new_page(
        viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce", color_scheme="light"
    )
    page.set_default_timeout(SECONDS * 1000)
    expect.set_options(timeout=SECONDS * 1000)
    await page.goto(login_link(service.address, service.access.make_code()))
    await page.wait_for_url(f"{service.address}/")
    await page.goto(f"{service.address}/s/{session}")
    await expect(page.get_by_role("log").get_by_text(TEST).first).to_be_visible()
    await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
    file.parent.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=file)


@asynccontextmanager
async def _chromium() -> AsyncIterator[Browser]:
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
