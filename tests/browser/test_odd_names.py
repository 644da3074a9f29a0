"""Names that every object of JavaScript inherits, as tools and questions: the deck shows them."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import ToolUse, fake
from support.api_client import ApiSeat
from support.browser import Screen
from support.runners import program

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

NAMES = ("constructor", "toString", "hasOwnProperty", "__proto__", "valueOf")
ANSWERED = fake.Expect("control_response", timeout=120.0)


async def test_tools_of_any_name_are_shown_when_a_real_cli_tells_of_them(
    seat: ApiSeat, screen: Screen
) -> None:
    calls = [ToolUse(name, {name: name}) for name in NAMES]
    session = await seat.create(*calls, "and on it goes")
    await screen.open(session)
    await screen.hears("and on it goes")
    for name in NAMES:
        row = screen.story.locator(".tool-row", has_text=name).first
        await expect(row).to_have_attribute("data-kind", "tool")
    await screen.page.reload()
    await screen.hears("and on it goes")
    await expect(screen.page.locator("[data-render-error]")).to_have_count(0)
    await seat.stop(session)


async def test_tools_and_questions_of_any_name_are_asked_about_and_answered(
    seat: ApiSeat, screen: Screen
) -> None:
    record = seat.home / "odd-names"
    options = [{"label": each, "description": each} for each in ("constructor", "__proto__")]
    questions = [
        {"question": name, "header": name, "multiSelect": False, "options": options}
        for name in NAMES
    ]
    script = [
        fake.Initialize(),
        fake.Expect("user"),
        *(
            step
            for name in NAMES
            for step in (
                fake.say(fake.assistant(fake.tool_use(name, {name: name}, f"t-{name}"))),
                fake.say(fake.can_use_tool(name, {name: name}, f"ask-{name}")),
                ANSWERED,
            )
        ),
        fake.say(fake.can_use_tool("AskUserQuestion", {"questions": questions}, "ask-questions")),
        ANSWERED,
        fake.say(fake.assistant("all answered"), fake.result()),
        fake.Serve(),
    ]
    spec = {
        "directory": str(seat.work),
        "claude": program(seat.home / "odd", script, record),
        "sandbox": "off",  # it records outside of the session's folders
    }
    session = str((await seat.ada.post("sessions", spec=spec, prompt="begin"))["session"])
    await screen.open(session)
    for name in NAMES:
        await expect(screen.card).to_contain_text(name)
        await screen.card.get_by_role("button", name="Allow once").click()
        await expect(
            screen.story.locator(".asks-card[data-state='settled']", has_text=name)
        ).to_be_visible()
    answer = screen.card.get_by_role("button", name="Answer")
    await expect(answer).to_be_disabled()
    for name in NAMES:
        group = screen.card.get_by_role("group", name=name)
        await group.get_by_role("radio", name="__proto__").check()
    await answer.click()
    await screen.hears("all answered")
    await expect(screen.page.locator("[data-render-error]")).to_have_count(0)
    for name in NAMES:
        assert f'"{name}": "__proto__"' in record.read_text().replace('":"', '": "')
    await seat.stop(session)
