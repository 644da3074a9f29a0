"""Nothing that an agent or a person wrote pushes a button off the screen, at any width."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from quarterdeck.testing import ToolUse
from support.api_client import ApiSeat
from support.browser import Screen
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

WIDTHS = (320, 390, 768, 1280, 1440)
WORD = "unbroken" * 60
NAME = f"{WORD[:200]} and a name of many words " + "that goes on " * 20
COMMAND = f"touch {WORD} && touch " + "several words " * 60
TABLE = "\n".join(
    (
        "| Package | Downloads | Remarks | Maintainer | Licence | Since |",
        "|---|---|---|---|---|---|",
        f"| quarterdeck-{WORD} | 1,032,559 | every word of it | Somebody | Apache | 2024 |",
        "| hatchling | 1,032 | build backend | Nobody | MIT | 2021 |",
    )
)
PLAN = f"# {NAME}\n\n{TABLE}\n\n```bash\n{COMMAND}\n```\n\n- {WORD}\n- `{WORD}`\n\n> {WORD}\n"
OPTIONS = [
    {"label": WORD, "description": WORD, "preview": COMMAND},
    {"label": "Short", "description": "short"},
]
QUESTION = {"header": "H" * 12, "question": WORD, "multiSelect": False, "options": OPTIONS}

_TOO_WIDE = """() => {
  const found = [];
  const boxes = ['.sidebar-session-list', '.timeline-log', '.layout-page', '.panel-panel',
    '.asks-card', '.composer-box'];
  for (const box of [document.scrollingElement, ...document.querySelectorAll(boxes.join())]) {
    if (!box.clientWidth || box.scrollWidth <= box.clientWidth) continue;
    const edge = box.getBoundingClientRect().right;
    const over = [...box.querySelectorAll('*')].filter(
      (one) => one.getBoundingClientRect().right > edge && !one.closest('[data-scrolls] table'));
    found.push(`${box.className || 'the page'}: ${over.map((one) => one.outerHTML.slice(0, 80))}`);
  }
  return found;
}"""
"""What is wider than the place that it is in, with what makes it so."""

_EDGES = """found => found.map((one) => {
  const box = one.getBoundingClientRect();
  return [one.innerText, box.left, box.right];
})"""


async def is_within(page: Page, *buttons: Locator) -> None:
    """Every one of these is there, and between the left and the right edge of the window."""
    width = await page.evaluate("document.documentElement.clientWidth")
    for button in buttons:
        await expect(button.first).to_be_visible()
        for text, left, right in await button.evaluate_all(_EDGES):
            assert right > left, (width, text)
            assert left >= 0, (width, text, left)
            assert right <= width, (width, text, right)


async def at_every_width(screen: Screen, *buttons: Locator, height: int = 800) -> None:
    """Nothing is too wide, and these buttons are in the window, whatever its width."""
    page = screen.page
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": height})
        # Rows are measured again in the next frames.
        await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        assert await page.evaluate(_TOO_WIDE) == [], width
        await is_within(page, *buttons)


def button(place: Locator | Page, name: str) -> Locator:
    return place.get_by_role("button", name=name)


async def test_long_commands_plans_questions_names_and_prompts_leave_every_button_in_reach(
    seat: ApiSeat, screen: Screen
) -> None:
    page, card = screen.page, screen.card
    call = await seat.create(bash(COMMAND), "done")
    await seat.ask(call)
    await seat.ada.patch(f"sessions/{call}", name=NAME)
    await seat.send(call, f"{WORD} " * 3)
    await seat.send(call, "second")
    path = seat.work / ("d" * 120) / f"{'f' * 120}.py"
    edit = await seat.create(
        ToolUse("Write", {"file_path": str(path), "content": f"x = '{WORD}'\n" * 5}), "written"
    )
    await seat.ask(edit)
    questions = await seat.create(ToolUse("AskUserQuestion", {"questions": [QUESTION]}), "I see")
    await seat.ask(questions)
    plan = await seat.create("ready")
    await seat.turn_ended(plan)
    await seat.control(plan, "set_permission_mode", mode="plan")
    await seat.send(plan, ToolUse("ExitPlanMode", {"plan": PLAN}), "planned")
    await seat.ask(plan)

    await screen.open(call)
    await expect(page.get_by_role("list", name="Queued prompts")).to_contain_text("unbroken")
    await at_every_width(
        screen,
        button(page, "Interrupt"),
        button(page, "Queue"),
        button(page, "Cancel"),
        button(card, "Allow once"),
        button(card, "Always allow"),
        button(card, "Deny"),
    )
    await button(card, "Deny").click()
    await at_every_width(screen, button(card, "Deny and stop"), button(card, "Back"))
    await button(page, "Edit").first.click()
    await at_every_width(screen, button(page, "Save"), button(page, "Queue"))

    await screen.open(edit)
    await at_every_width(screen, button(card, "Allow once"), button(card, "Deny"))
    await screen.open(questions)
    await at_every_width(screen, button(card, "Answer"), button(card, "Skip"))
    await screen.open(plan)
    await at_every_width(
        screen,
        button(card, "Approve, ask for each call"),
        button(card, "Keep planning"),
        button(card, "Reject"),
        button(page, "Interrupt"),
        button(page, "Queue"),
    )
    table = card.locator("[data-scrolls]")
    assert await table.evaluate("box => box.scrollWidth > box.clientWidth")
    await page.set_viewport_size({"width": 390, "height": 844})
    await screen.shot("layout-plan-phone")

    await page.goto(f"{screen.deck.address}/")
    waits = page.get_by_role("region", name="Waiting for you")
    await expect(waits.locator(".asks-card")).to_have_count(4)
    await at_every_width(screen, button(waits, "Deny"), button(waits, "Reject"))
    for session in (call, edit, questions, plan):
        await seat.stop(session)


async def test_words_in_a_table_stay_whole_and_the_table_scrolls(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(TABLE)
    await seat.turn_ended(session)
    await screen.open(session)
    await at_every_width(screen, button(screen.page, "Send"))
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    for word in ("Package", "1,032", "Maintainer", "hatchling"):
        cell = screen.story.locator("th, td", has_text=word).last
        lines = await cell.evaluate(
            """cell => {
              const range = document.createRange();
              range.selectNodeContents(cell);
              return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
            }"""
        )
        assert lines == 1, word
    wrap = screen.story.locator("[data-scrolls]")
    assert await wrap.evaluate("box => box.scrollWidth > box.clientWidth")
    await screen.shot("layout-table-phone")
    # The first column stays while the rest scrolls, and leaves room for the rest.
    firsts = await wrap.evaluate(
        """box => {
          box.scrollLeft = box.scrollWidth;
          const left = box.getBoundingClientRect().left;
          return [...box.querySelectorAll("tr > :first-child")].map((cell) => {
            const place = cell.getBoundingClientRect();
            return [Math.round(place.left - left), place.width / box.clientWidth < 0.6];
          });
        }"""
    )
    assert firsts
    assert all(first in ([0, True], [1, True]) for first in firsts), firsts
    await screen.shot("layout-table-scrolled-phone")
    await seat.stop(session)


async def test_the_tabs_of_the_policy_stay_in_sight_above_a_long_audit_log(
    seat: ApiSeat, screen: Screen
) -> None:
    calls = [bash(f"echo {number} {WORD}") for number in range(12)]
    session = await seat.create(*calls, "done")
    await seat.turn_ended(session)
    page = screen.page
    await page.goto(f"{screen.deck.address}/policy")
    await page.get_by_role("tab", name="Audit log").click()
    await expect(page.locator(".policy-part tbody tr").nth(11)).to_be_visible()
    replay = page.get_by_role("tab", name="Replay")
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 420})
        assert await page.evaluate(_TOO_WIDE) == [], width
        await page.locator(".policy-part tbody tr").last.scroll_into_view_if_needed()
        box = await page.get_by_role("tablist", name="Parts of the policy").bounding_box()
        assert box is not None
        assert box["height"] > 20
        assert 0 <= box["y"] < 420
        # Nothing is seen above them but the head of the page.
        assert await page.evaluate(
            """([x, y]) => !document.elementFromPoint(x, y)?.closest('table')""",
            [box["x"] + 30, max(0, box["y"] - 3)],
        )
    await screen.shot("layout-audit")
    # However long the reason of a decision is: the column is not cut on a desktop.
    await page.set_viewport_size({"width": 1440, "height": 420})
    cut = await page.evaluate(
        """word => {
          const why = document.querySelector('.policy-part tbody td:last-child');
          why.textContent = word;
          const place = why.closest('[data-scrolls]');
          return place.scrollWidth - place.clientWidth;
        }""",
        WORD,
    )
    assert cut <= 0
    await replay.click()
    await expect(replay).to_have_attribute("aria-selected", "true")
    await seat.stop(session)


@pytest.mark.parametrize("name", ["short", NAME[:120]], ids=["a short name", "a long name"])
async def test_a_phone_shows_whether_a_session_has_a_sandbox(
    seat: ApiSeat, phone: Screen, name: str
) -> None:
    session = await seat.create("ready")
    await seat.turn_ended(session)
    await seat.ada.patch(f"sessions/{session}", name=name)
    made = await seat.ada.get(f"sessions/{session}")
    label = "Sandbox: protect" if made["sandbox"].get("mode") == "protect" else "No sandbox"
    await phone.open(session)
    page = phone.page
    shield = page.get_by_text(label)
    await expect(shield).to_be_visible()
    await phone.shot(f"sandbox-phone-{len(name)}")
    await at_every_width(phone, shield, button(page, "Stop"), button(page, "Panels"))
    head = page.locator("header").filter(has=page.get_by_role("heading", name=name[:5]))
    await page.set_viewport_size({"width": 390, "height": 844})
    # Two lines, as without the shield, once the page has drawn itself for a phone again.
    await page.wait_for_function(
        "head => head.getBoundingClientRect().height < 100", arg=await head.element_handle()
    )
