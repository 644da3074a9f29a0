"""An exported page in a real browser: it opens from the disk, asks for nothing, runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from playwright.async_api import Browser, Frame, expect

from quarterdeck.history.export import Form
from quarterdeck.history.imports import Importer
from quarterdeck.journal.memory import MemoryJournal
from support.exports import HOSTILE, STORY, answer, export, export_of, prompt
from support.left_sessions import left_session
from support.session_files import Disk

Scheme = Literal["light", "dark"]
_T = TypeVar("_T")


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


async def test_each_of_five_hundred_imported_sessions_opens_as_a_page(
    browser: Browser, tmp_path: Path
) -> None:
    disk, journal = Disk(tmp_path), MemoryJournal()
    for number in range(500):
        left_session(disk, number)
    report = await Importer(journal, lambda _: [], config_dir=disk.config).run()
    files: dict[str, Path] = {}
    for told in report.sessions:
        assert told.session is not None
        view = await journal.summary(told.session)
        assert view is not None
        files[view.name] = tmp_path / f"{told.session}.html"
        files[view.name].write_text(await export_of(journal, Form.HTML, told.session))
    assert len(files) == 500
    asked: list[str] = []
    complaints: list[str] = []
    page = await browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # Fifty pages beside each other: a browser takes far longer to leave a page than to open it.
    for number, some in enumerate(batched(files.items(), 50)):
        wall = tmp_path / f"wall-{number}.html"
        wall.write_text("".join(f"<iframe src='{file.as_uri()}'></iframe>" for _, file in some))
        await page.goto(wall.as_uri(), wait_until="load")
        for (name, _), frame in zip(some, page.frames[1:], strict=True):
            await _shows(frame, name)
    await page.close()
    opened = [url for url in asked if "wall-" not in url]
    assert opened == [file.as_uri() for file in files.values()]
    assert complaints == []


async def _shows(frame: Frame, name: str) -> None:
    heading, text = await frame.evaluate(
        "[document.querySelector('h1').innerText, document.body.innerText]"
    )
    number = int(name.split(":")[0].removeprefix("Prompt "))
    assert heading == name
    for n in (number, number + 1):  # its two turns
        assert f"Prompt {n}: fix the näme {n}" in text
        assert f"Answer {n}: done 😀" in text
        assert f"pytest -k t{n}" in text


def batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of so many."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
