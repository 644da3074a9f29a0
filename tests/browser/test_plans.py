"""Plans, as a person reviews them in the browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import ToolUse
from support.api_client import ApiSeat
from support.browser import Screen

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PLAN = """# How I would do it

First I *read* the code.

- then the tests
- then the docs

```python
print("done")
```
"""


async def test_a_plan_is_commented_on_sent_back_and_then_done(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create("ready")
    await seat.turn_ended(session)
    await screen.open(session)
    await screen.page.get_by_role("button", name="Mode: default").click()
    await screen.page.get_by_role("menuitemradio", name="plan").click()
    await expect(screen.page.get_by_role("button", name="Mode: plan")).to_be_visible()
    call = ToolUse("ExitPlanMode", {"plan": PLAN})
    await seat.send(session, call, "I think again")
    card = screen.card
    await expect(card.get_by_role("heading", name="How I would do it")).to_be_visible()
    await expect(card.get_by_role("button", name="Keep planning")).to_be_disabled()
    await card.get_by_role("button", name="Comment on: First I").click()
    await card.get_by_label("Your comment on part 2").fill("read the issue, too")
    await card.get_by_label("Feedback for the agent").fill("and be quick")
    await screen.shot("plan-comments")
    await screen.check_access()
    await card.get_by_role("button", name="Keep planning, with 1 comment").click()
    await screen.hears("I think again")
    said = seat.model.turns[-1].last_text
    assert "> First I *read* the code.\nread the issue, too" in said
    assert "and be quick" in said
    settled = screen.story.locator(".asks-card[data-state='settled']")
    await expect(settled).to_contain_text("Sent back for revision by the owner")
    await expect(settled).to_contain_text("and be quick")
    assert await screen.story.locator(".tool-row", has_text="ExitPlanMode").count() == 0

    await seat.send(session, call, "done as planned")
    # Nothing is shown twice: beside the open session, the list has only a number.
    await expect(screen.page.get_by_role("button", name="Approve, accept edits")).to_have_count(1)
    await expect(screen.page.get_by_role("link", name="Inbox 1 waiting for you")).to_be_visible()
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    await screen.shot("plan-phone")
    await screen.check_access()
    await screen.card.locator(".asks-heading").click()
    await screen.keys_act()
    await screen.page.keyboard.press("1")
    await expect(screen.card).to_contain_text("Press 1 again to approve the plan and accept edits")
    await screen.keys_act()
    await screen.page.keyboard.press("1")
    await screen.hears("done as planned")
    await expect(settled.last).to_contain_text("Approved (accept edits) by the owner")
    assert (await seat.ada.get(f"sessions/{session}"))["mode"] == "acceptEdits"
    await screen.shot("plan-approved")
    await seat.stop(session)


async def test_a_plan_is_rejected_done_in_a_new_conversation_or_answered_after_its_agents_end(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create("ready")
    await seat.turn_ended(session)
    await seat.control(session, "set_permission_mode", mode="plan")
    await screen.open(session)
    call = ToolUse("ExitPlanMode", {"plan": PLAN})
    await seat.send(session, call, "never said")
    await screen.card.get_by_role("button", name="Reject").click()
    settled = screen.story.locator(".asks-card[data-state='settled']")
    await expect(settled).to_contain_text("Rejected by the owner")
    await seat.turn_ended(session)

    await seat.send(session, call, "never said")
    await screen.card.get_by_role("button", name="Approve in a new conversation").click()
    await expect(settled.last).to_contain_text("Approved in a new conversation by the owner")
    await screen.hears("Implement the following plan")
    await seat.state(session, "idle")

    await seat.control(session, "set_permission_mode", mode="plan")
    await seat.send(session, call, "never said")
    await expect(
        screen.card.get_by_role("button", name="Approve, ask for each call")
    ).to_be_enabled()
    await seat.stop(session)
    await expect(screen.card).to_contain_text(
        "The agent ended before the question was answered. You can still answer"
    )
    await screen.shot("plan-stale")
    await screen.check_access()
    await screen.page.reload()
    await screen.card.get_by_role("button", name="Approve, ask for each call").click()
    await expect(settled.last).to_contain_text("Approved (ask for each call) by the owner")
    told = screen.story.locator("article.entry-prompt").last
    await expect(told).to_contain_text("The user approved your plan. Implement it:")
    await screen.hears("echo: The user approved your plan.")
    await seat.state(session, "idle")
    await seat.stop(session)
