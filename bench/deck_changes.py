"""Measures the review of changes in the browser: 200 files with 10,000 changed lines.

A session of the fake CLI works in a repository, whose files are then changed as a shell command
would change them. Measured is the time from the click on the link to the review until the list of
files and the first diff are painted, with a real runner and git, and the time from loading the page
by its address; then from file to file, and for one file with 10,000 changed lines; and the frames
while that one is scrolled.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from msgspec import Raw
from playwright.async_api import Page

from bench.deck_asks import fake_program
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import CreateSession, StopSession
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.service import Service
from quarterdeck.testing import fake

FILES, LINES = 200, 50
LONG = "long.py"
SESSION = "changing"
FRAMES = 300

CLICKED = """(selector) => new Promise((done) => {
  const before = document.querySelector('[data-layout]')?.getAttribute('aria-label');
  const start = performance.now();
  document.querySelector(selector).click();
  const look = () => {
    const diff = document.querySelector('[data-layout]');
    const fresh = diff && diff.getAttribute('aria-label') !== before;
    if (!fresh || !diff.querySelector('[data-sign="+"]')) return requestAnimationFrame(look);
    requestAnimationFrame(() => done(performance.now() - start));
  };
  requestAnimationFrame(look);
})"""
PAINTED = """() => new Promise((done) => {
  const look = () => {
    const drawn = document.querySelector('[data-layout] [data-sign="+"]');
    if (!drawn) return requestAnimationFrame(look);
    requestAnimationFrame(() => done(performance.now()));
  };
  requestAnimationFrame(look);
})"""
SCROLL = """(frames) => new Promise((done) => {
  const box = document.querySelector('[data-layout]');
  const times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    box.scrollTop += 400;
    if (times.length < frames) requestAnimationFrame(step);
    else done(times.slice(1));
  };
  requestAnimationFrame(step);
})"""


class Reviewed(Value):
    """In ms, one of each round; and the frames of the last."""

    opened: list[float]
    by_address: list[float]
    """With the whole page, and nothing read before."""
    next_file: list[float]
    long_file: list[float]
    frames: list[float]


async def measure_changes(folder: Path, deck: Service, page: Page, rounds: int) -> Reviewed:
    """Measure it; the session is ended."""
    repository = _make_repository(folder / "changed")
    claude = fake_program(folder / "changing-cli", [fake.Initialize(), fake.Serve()])
    env = {"HOME": str(folder / "home")}
    spec = SessionSpec(directory=str(repository), claude=claude, name=SESSION, env=env)
    command = CreateSession(spec=spec, session=SESSION, prompt=Raw(b'"begin"'), by="bench")
    await deck.hub.submit(command)
    async for _ in deck.hub.follow({SESSION: 0}):
        if (await deck.hub.session(SESSION)).pid is not None:
            break
    _change(repository)
    link = f'a[href="/changes/{SESSION}"]'
    opened: list[float] = []
    addresses: list[float] = []
    steps: list[float] = []
    longs: list[float] = []
    frames: list[float] = []
    for _ in range(rounds + 1):  # the first one loads the page's code
        await page.goto(f"{deck.address}/s/{SESSION}?panel=files")
        await page.locator(link).first.wait_for()
        await page.wait_for_timeout(500)
        opened.append(float(await page.evaluate(CLICKED, link)))
        steps.append(float(await page.evaluate(CLICKED, 'button[aria-label="Next file"]')))
        await page.get_by_label("Filter files").fill(LONG)
        await page.get_by_role("button", name=LONG).wait_for()
        longs.append(float(await page.evaluate(CLICKED, f'nav button[title="{LONG}"]')))
        frames = await page.evaluate(SCROLL, FRAMES)
        await page.goto(f"{deck.address}/changes/{SESSION}")
        addresses.append(float(await page.evaluate(PAINTED)))
    await deck.hub.submit(StopSession(session=SESSION))
    return Reviewed(
        opened=opened[1:],
        by_address=addresses[1:],
        next_file=steps[1:],
        long_file=longs[1:],
        frames=frames,
    )


def _make_repository(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    for number in range(FILES):
        text = "".join(f"value_{line} = {line}  # of {number}\n" for line in range(2 * LINES))
        (folder / "src" / f"module_{number:03}.py").write_text(text)
    (folder / LONG).write_text("".join(f"value_{line} = {line}\n" for line in range(20_000)))
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "bench"),
        ("config", "user.email", "bench@localhost"),
        ("add", "--all"),
        ("commit", "-q", "-m", "first"),
    ):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    return folder


def _change(folder: Path) -> None:
    """Change every second line of each file."""
    for path in [*(folder / "src").iterdir(), folder / LONG]:
        lines = path.read_text().splitlines()
        lines[::2] = [line.replace("value", "changed") for line in lines[::2]]
        path.write_text("\n".join(lines) + "\n")
