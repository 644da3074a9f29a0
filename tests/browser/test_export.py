"""An exported page in a real browser: it opens from the disk, asks for nothing, runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, expect

from quarterdeck.history.export import Form
from quarterdeck.history.imports import Importer
from quarterdeck.journal.memory import MemoryJournal
from support.exports import HOSTILE, STORY, answer, export, export_of, prompt
from support.left_sessions import left_session
from support.session_files import Disk

Scheme = Literal["light", "dark"]


@pytest.mark.parametrize(("scheme", "ground"), [("light", "253, 252, 250"), ("dark", "22, 24, 27")])
async def test_an_exported_page_opens_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, scheme: Scheme, ground: str
) -> None:
    hostile = [event for text in HOSTILE for event in (prompt(text), answer(text))]
    file = tmp_path / "session.html"
    file.write_text(await export(Form.HTML, *STORY, *hostile))
    asked: list[str] = []
    complaints: list[str] = []
    page = await browser.new_page(color_scheme=scheme)
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    await page.goto(file.as_uri(), wait_until="networkidle")
    await expect(page.get_by_role("heading", name="One")).to_be_visible()
    call = page.locator("details", has_text="Bash returned")
    await expect(call.locator("pre")).to_be_hidden()
    await call.locator("summary").click()
    await expect(call.locator("pre")).to_have_text("a\n```\n</pre><script>x")
    colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == f"rgb({ground})"
    assert await page.locator("script, img, iframe, svg, link").count() == 0
    await page.close()
    assert asked == [file.as_uri()]
    assert complaints == []


async def test_five_hundred_imported_sessions_are_pages_and_open(
    browser: Browser, tmp_path: Path
) -> None:
    disk, journal = Disk(tmp_path), MemoryJournal()
    for number in range(500):
        left_session(disk, number)
    report = await Importer(journal, lambda _: [], config_dir=disk.config).run()
    pages: dict[str, str] = {}
    for told in report.sessions:
        assert told.session is not None
        view = await journal.summary(told.session)
        assert view is not None
        pages[view.name] = await export_of(journal, Form.HTML, told.session)
        assert [line for line in _lines_of(view.name) if line not in pages[view.name]] == []
    assert len(pages) == 500
    # The pages differ in their numbers only: every tenth is opened.
    files = {name: tmp_path / f"{at}.html" for at, name in enumerate(pages) if at % 10 == 0}
    for name, file in files.items():
        file.write_text(pages[name])
    asked: list[str] = []
    complaints: list[str] = []
    page = await browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # Beside each other: a browser takes far longer to leave a page than to open it.
    wall = tmp_path / "wall.html"
    wall.write_text("".join(f"<iframe src='{file.as_uri()}'></iframe>" for file in files.values()))
    await page.goto(wall.as_uri(), wait_until="load")
    for name, frame in zip(files, page.frames[1:], strict=True):
        heading, text = await frame.evaluate(
            "[document.querySelector('h1').innerText, document.body.innerText]"
        )
        assert heading == name
        assert [line for line in _lines_of(name) if line not in text] == []
    await page.close()
    assert asked == [wall.as_uri(), *(file.as_uri() for file in files.values())]
    assert complaints == []


def _lines_of(name: str) -> list[str]:
    """What the page of a session shows of its two turns."""
    number = int(name.split(":")[0].removeprefix("Prompt "))
    turns = (number, number + 1)
    return [
        line
        for n in turns
        for line in (f"Prompt {n}: fix the näme {n}", f"Answer {n}: done 😀", f"pytest -k t{n}")
    ]
