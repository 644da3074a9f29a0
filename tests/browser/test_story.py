"""A story that one can read: folded runs, what failed, tables, formulas, diagrams, words found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from quarterdeck.testing import Text, ToolUse, fake, play, reply
from support import mcp_server
from support.api_client import ApiSeat
from support.browser import DESKTOP, PHONE, Screen
from support.runners import program
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

WORD = "averylongwordthatnobodywouldbreak" * 4
RICH = f"""A table:

| Package | Downloads per month | What it is used for in this project | Licence |
|---|---:|---|---|
| requests | 1,032,457,891 | {WORD} | Apache-2.0 |
| numpy | 312 | arrays | BSD-3-Clause |

The sum is $\\sum_{{i=1}}^n x_i^2$, and it costs $5 or $10.

```mermaid
graph TD
  A[Read] --> B[Fold] --> C[Show]
```

```mermaid
graph TD
  X["<img src='https://evil.example/x' onerror='window.hurt=1'>"] --> Y
  click X "javascript:window.hurt=2"
  click Y call hurt()
```

```mermaid
this is no diagram <script>window.hurt=3</script>
```

See [the fold](src/fold.py:12) and {WORD}.
"""
LONG = """<persisted-output>
Output too large (52.3KB). Full output saved to: /home/ada/.claude/tool-results/b1.txt

Preview (first 2KB):
first line of it
...
</persisted-output>"""
TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter((one) => {
  const box = one.getBoundingClientRect();
  const style = getComputedStyle(one);
  return box.width > 0 && box.right > innerWidth + 1 && style.visibility !== 'hidden'
    && !one.closest('[data-scrolls], pre, .markdown-drawing, .texts-visually-hidden, svg');
}).map((one) => one.outerHTML.slice(0, 120))"""
"""What is beyond the right edge, but for what scrolls in a box of its own."""
ONE_LINE = """cell => {
  const line = parseFloat(getComputedStyle(cell).lineHeight) || 20;
  return cell.getBoundingClientRect().height < 2.6 * line;
}"""


def called(number: int, output: str = "ok", *, failed: bool = False) -> fake.Step:
    """A call of a command, with its result."""
    call = f"toolu_{number}"
    use = fake.tool_use("Bash", {"command": f"make part-{number}"}, call)
    return fake.say(fake.assistant(use), fake.tool_result(output, call, is_error=failed))


def script() -> list[fake.Step]:
    """A turn with 110 calls in a row, one that failed, one with a stored output, and a text."""
    lost = "\n".join(f"line {number}" for number in range(40)) + "\nlinker: symbol not found"
    return [
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant("I begin with the parts")),
        *(called(number, f"part {number} is built") for number in range(110)),
        called(200, lost, failed=True),
        called(201, LONG),
        fake.say(fake.assistant(RICH)),
        fake.say(fake.result()),
        fake.Serve(),
    ]


async def rows_fit(page: Page) -> None:
    """Nothing is beyond the right edge of the window."""
    await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert await page.evaluate(TOO_WIDE) == []


async def test_a_long_story_is_folded_found_and_fits_on_a_desktop_and_on_a_phone(
    seat: ApiSeat, screen: Screen
) -> None:
    spec = {"directory": str(seat.work), "claude": program(seat.home / "story", script())}
    session = str((await seat.ada.post("sessions", spec=spec, prompt="go"))["session"])
    page, story = screen.page, screen.story
    await screen.open(session)
    await expect(story.locator(".entry-turn")).to_be_visible()

    # A table scrolls and tears no word; formulas and diagrams are drawn; a file is a link.
    await expect(story.locator("math msubsup").first).to_be_visible()
    await expect(story).to_contain_text("it costs $5 or $10")
    # A hostile diagram is a picture too, in which nothing acts; what is none stays source.
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await expect(story).to_contain_text("The diagram could not be drawn.")
    await expect(story.locator(".markdown-diagram img")).to_have_count(2)
    assert await page.evaluate("window.hurt") is None
    assert not [url for url in asked if "evil" in url and not url.startswith("data:")]
    # The frame's own rules have stopped what the label tried there.
    assert all("/diagram/" in told for told in screen.complaints), screen.complaints
    screen.complaints.clear()
    picture = story.locator(".markdown-diagram img").first
    await expect(picture).to_be_visible()
    assert await picture.evaluate("img => img.naturalWidth > 50")
    assert await page.locator("iframe").count() == 0
    for cell in await story.locator("td", has_text="1,032").all():
        assert await cell.evaluate(ONE_LINE)
    link = story.get_by_role("link", name="the fold")
    await expect(link).to_have_attribute(
        "href", f"/changes/{session}?part=files&file=src%2Ffold.py&line=12"
    )
    await screen.shot("story-rich")
    await screen.check_access()

    # The last lines of a failure are there without a click; a stored output has its place.
    failed = story.locator(".tool-row", has_text="make part-200")
    await expect(failed.locator(".tool-tail")).to_contain_text("linker: symbol not found")
    await expect(failed.locator(".tool-tail")).not_to_contain_text("line 20")
    stored = story.locator(".tool-row", has_text="make part-201")
    await stored.get_by_role("button").first.click()
    await expect(stored).to_contain_text("Long output (52.3KB), stored in /home/ada/.claude")
    await expect(stored).not_to_contain_text("persisted-output")

    # The run of calls is one row. What is found in it unfolds it.
    run = story.locator(".tool-row[data-run]")
    await expect(run).to_contain_text("110 calls")
    assert await story.locator(".timeline-row").count() < 20
    await page.keyboard.press("Control+f")
    find = page.get_by_role("searchbox", name="Find in this session")
    await find.fill("part 57 is built")
    await expect(page.get_by_role("search")).to_contain_text("0 of 1")
    await find.press("Enter")
    found = story.locator(".timeline-row[data-found]")
    await expect(found).to_contain_text("make part-57")
    await expect(found).to_contain_text("part 57 is built")
    await screen.shot("story-found")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("search")).to_have_count(0)

    # A link leads to a message, wherever it is.
    events = (await seat.ada.get(f"sessions/{session}/events", limit=1000))["events"]
    begins = next(one["seq"] for one in events if "I begin with the parts" in str(one["event"]))
    await page.goto(f"{screen.deck.address}/s/{session}?m={begins}")
    await expect(story.locator(".timeline-row[data-found]")).to_contain_text(
        "I begin with the parts"
    )

    # The same on a phone: all of the head is in a sheet.
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await screen.load(session)
    await expect(picture).to_be_visible()
    await expect(story.locator(".markdown-diagram img")).to_have_count(2)
    await rows_fit(page)
    await screen.shot("story-phone")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Session details").click()
    sheet = page.get_by_role("dialog", name="Session details")
    for name in ("Folder", "Model", "Mode", "Budget", "Machine", "Sandbox"):
        await expect(sheet.get_by_text(name, exact=True)).to_be_visible()
    await screen.shot("story-phone-sheet")
    await rows_fit(page)
    await screen.check_access()
    await page.keyboard.press("Escape")
    await page.set_viewport_size({"width": DESKTOP["width"], "height": DESKTOP["height"]})
    await page.goto(f"{screen.deck.address}/")  # nothing is drawn any more
    assert all("/diagram/" in told for told in screen.complaints), screen.complaints
    screen.complaints.clear()


async def test_the_head_changes_what_it_shows_and_the_end_of_the_story_tells_what_happens(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(
        reply(Text("I think about it. ", times=3), bash("touch made")), "made"
    )
    page, story = screen.page, screen.story
    await screen.open(session)
    await expect(screen.card).to_be_visible()
    live = story.locator("[data-live-row]")
    await expect(live).to_contain_text("Waiting for your answer")
    await screen.shot("story-waiting")
    await screen.card.get_by_role("button", name="Allow once").click()
    await screen.hears("made")
    await expect(live).to_have_count(0)
    # Call and verdict are one row.
    call = story.locator(".tool-row", has_text="touch made")
    await expect(call).to_have_count(1)
    await expect(call.locator(".tool-verdict")).to_contain_text("allowed by the owner")

    head = page.locator(".session-header-bar")
    await head.get_by_role("button", name="Mode: default").click()
    menu = page.get_by_role("menu")
    await expect(menu).not_to_contain_text("bypass permissions")
    await screen.shot("story-head-mode")
    await menu.get_by_role("menuitemradio", name="plan").click()
    await expect(head.get_by_role("button", name="Mode: plan")).to_be_visible()
    view = await seat.ada.get(f"sessions/{session}")
    assert view["mode"] == "plan"
    efforts = [one.get("efforts") for one in view["offers"]["models"]]
    assert any(efforts), efforts
    await head.locator("[data-fact=effort]").get_by_role("button").click()
    await page.get_by_role("menu").get_by_role("menuitemradio", name="low").click()
    await expect(head.get_by_role("button", name="Effort: low")).to_be_visible()

    await head.locator("[data-fact=budget]").get_by_role("button").click()
    form = page.get_by_role("dialog", name="Budget of this session")
    await form.get_by_label("Session, in US dollars").fill("0.0001")
    await form.get_by_role("button", name="Save").click()
    await expect(form).to_have_count(0)
    note = story.locator("[data-code]", has_text="Budget of the session reached")
    await screen.say(play("never said"))
    raise_it = note.last.get_by_role("button", name="Raise the budget")
    await expect(raise_it).to_be_visible()
    await screen.shot("story-budget")
    await raise_it.click()
    await form.get_by_label("Session, in US dollars").fill("5")
    await form.get_by_role("button", name="Save").click()
    await expect(head.locator("[data-fact=budget]")).to_contain_text("/ $5")
    await screen.check_access()
    await page.goto(f"{screen.deck.address}/s/{session}?panel=context")
    await expect(page.get_by_role("tab", name="Context")).to_have_attribute("aria-selected", "true")
    await seat.stop(session)


async def test_output_of_slash_commands_and_turns_that_nobody_prompted_have_their_cause(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(
        ToolUse(
            "Bash",
            {"command": "sleep 0.3; touch slept", "description": "nap", "run_in_background": True},
        ),
        "it runs",
    )
    await screen.open(session)
    await screen.card.get_by_role("button", name="Allow once").click()
    await screen.hears("it runs")
    cause = screen.story.locator("[data-code='turn.cause']")
    await expect(cause).to_contain_text("Nobody prompted this turn: Background command")
    await screen.say("/context")
    output = screen.story.locator(".entry-output")
    await expect(output.first).to_contain_text("Output of /context")
    await screen.shot("story-commands")
    await screen.check_access()

    # A server is added to the running agent, and has its tools.
    page = screen.page
    await page.goto(f"{screen.deck.address}/s/{session}?panel=mcp")
    panel = page.get_by_role("tabpanel")
    await panel.get_by_text("Add a server").click()
    await panel.get_by_label("Name").fill("clock")
    command = f"'{sys.executable}' '{Path(mcp_server.__file__)}'"
    await panel.get_by_label("Command with arguments").fill(command)
    await panel.get_by_role("button", name="Add", exact=True).click()
    await expect(panel.locator(".card-card", has_text="clock")).to_contain_text("connected")
    await screen.shot("story-mcp")
    await seat.stop(session)
