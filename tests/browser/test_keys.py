"""Keys that answer, and keys that are only typed: text never becomes an answer."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import ToolUse
from support.api_client import ApiSeat, Json
from support.browser import DESKTOP, PHONE, WIDE, Screen
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PLAN = "# How I would do it\n\nFirst I read the code.\n\nThen I change it.\n"
SENTENCES = ("against the rules", "say nay, it is 1 2 3 4 5 e y s a g")
TYPING = 40.0
"""Milliseconds between two letters: nobody types faster."""


async def two_wait(seat: ApiSeat) -> tuple[str, str]:
    """Two sessions that wait for a person, the older one first."""
    first = await seat.create(bash("touch one"), "went on with one")
    await seat.ask(first)
    second = await seat.create(bash("touch two"), "went on with two")
    await seat.ask(second)
    return first, second


async def still_open(seat: ApiSeat) -> list[str]:
    """The sessions whose questions nobody has answered, the oldest question first."""
    asks = (await seat.ada.get("asks"))["asks"]
    return [each["session"] for each in sorted(asks, key=lambda each: each["at"])]


async def no_grant(seat: ApiSeat) -> bool:
    """Whether nobody was allowed anything beyond one call."""
    return not (await seat.ada.get("policy"))["grants"]


def answered(seat: ApiSeat, session: str) -> list[Json]:
    """What was answered to the questions of a session."""
    return [each["answer"] for each in seat.stream.of(session, "ask.answered")]


async def screens(screen: Screen, name: str) -> None:
    """Keep a screenshot in the width of a desktop and in that of a phone."""
    for size, suffix in ((WIDE, ""), (PHONE, "-phone"), (DESKTOP, None)):
        await screen.page.set_viewport_size({"width": size["width"], "height": size["height"]})
        if suffix is not None:
            await screen.shot(f"{name}{suffix}")


async def test_a_reason_that_is_typed_answers_nothing_anywhere(
    seat: ApiSeat, screen: Screen
) -> None:
    first, second = await two_wait(seat)

    async def is_all_that_was_answered(reason: str, times: int) -> None:
        assert reason in seat.model.turns[-1].last_text
        assert await still_open(seat) == [first]
        assert [one["answer"] for one in answered(seat, second)] == ["deny"] * times
        assert await no_grant(seat)

    waits = screen.page.get_by_role("region", name="Waiting for you")
    await expect(waits.locator(".asks-card")).to_have_count(2)
    card = waits.locator(".asks-card").last
    await card.get_by_role("button", name="Deny").click()
    await screen.page.keyboard.type(SENTENCES[0], delay=TYPING)
    await expect(card.get_by_label("Reason (sent to the agent)")).to_have_value(SENTENCES[0])
    await card.get_by_role("button", name="Deny and continue").click()
    await seat.turn_ended(second)
    await is_all_that_was_answered(SENTENCES[0], 1)

    await screen.open(second)
    for times, sentence in enumerate(SENTENCES, start=2):
        await seat.send(second, bash("touch two"), f"went on, {times}")
        await screen.card.get_by_role("button", name="Deny").click()
        await screen.page.keyboard.type(sentence, delay=TYPING)
        await expect(screen.card.get_by_label("Reason (sent to the agent)")).to_have_value(sentence)
        await screen.card.get_by_role("button", name="Deny and continue").click()
        await screen.hears(f"went on, {times}")  # so the hub has heard all that the page said
        await is_all_that_was_answered(sentence, times)
        await seat.turn_ended(second)
    for session in (first, second):
        await seat.stop(session)


async def test_a_comment_on_a_plan_answers_nothing_anywhere(seat: ApiSeat, screen: Screen) -> None:
    first = await seat.create(bash("touch one"), "went on with one")
    await seat.ask(first)
    planner = await seat.create("ready")
    await seat.turn_ended(planner)
    await seat.control(planner, "set_permission_mode", mode="plan")
    await screen.open(planner)
    await seat.send(planner, ToolUse("ExitPlanMode", {"plan": PLAN}), "I think again")
    card = screen.card
    await card.get_by_role("button", name="Comment on: First I").click()
    await screen.page.keyboard.type("1 more step, against the rules", delay=TYPING)
    field = card.get_by_label("Your comment on part 2")
    await expect(field).to_have_value("1 more step, against the rules")
    # A field that is emptied to be written anew stays where it is.
    await card.get_by_role("button", name="Comment on: Then I").click()
    await screen.page.keyboard.type("2 late", delay=TYPING)
    await field.click()
    await screen.page.keyboard.press("Control+a")
    await screen.page.keyboard.press("Backspace")
    await screen.page.keyboard.type("1 more…", delay=TYPING)
    await expect(field).to_have_value("1 more…")
    await expect(card.get_by_label("Your comment on part 3")).to_have_value("2 late")
    await screens(screen, "keys-plan-comment")
    assert sorted(await still_open(seat)) == sorted([first, planner])
    await card.get_by_role("button", name="Keep planning, with 2 comments").click()
    await screen.hears("I think again")
    assert "1 more…" in seat.model.turns[-1].last_text
    assert [one["choice"] for one in answered(seat, planner)] == ["revise"]
    assert await still_open(seat) == [first]
    for session in (first, planner):
        await seat.stop(session)


async def test_text_that_is_typed_after_a_jump_answers_nothing(
    seat: ApiSeat, screen: Screen
) -> None:
    first, second = await two_wait(seat)
    page = screen.page
    await screen.open(second)
    await expect(screen.card).to_contain_text("touch two")
    await expect(page).to_have_title("(2) Quarterdeck")
    await page.keyboard.press("g")  # this session's question first, though the other one is older
    await expect(screen.card.filter(has_text="touch two")).to_be_focused()
    # However slow this machine is, the page sees 300 ms between two letters.
    await page.evaluate("performance.now = () => window.at; window.at = performance.timeOrigin")
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("g")
    await expect(screen.card.filter(has_text="touch two")).to_be_focused()
    for letter in "yes, against 1 2 the rules, all assets":
        await page.evaluate("window.at += 300")
        await page.keyboard.press(letter)
    await page.evaluate("delete performance.now")
    await expect(screen.card.filter(has_text="touch two")).to_be_focused()
    await screen.composer.fill("are you there?")
    await screen.composer.press("Enter")
    await expect(page.get_by_role("list", name="Queued prompts")).to_contain_text("are you there?")
    assert await still_open(seat) == [first, second]  # and the hub has heard what came after
    assert await no_grant(seat)
    for session in (first, second):
        await seat.stop(session)


async def test_a_card_that_somebody_else_settles_hands_its_keys_to_no_other(
    seat: ApiSeat, screen: Screen
) -> None:
    first, second = await two_wait(seat)
    page = screen.page
    waits = page.get_by_role("region", name="Waiting for you").locator(".asks-card")
    await waits.first.locator(".asks-heading").click()
    await screen.keys_act()
    (ask,) = seat.stream.of(first, "ask.opened")
    await seat.answer(ask, "allow")
    await expect(waits).to_have_count(1)
    for _ in range(3):
        await page.keyboard.press("y")
        await page.keyboard.press("Enter")
    await expect(page.locator("[data-keys]")).to_have_count(0)
    await screen.load(second)  # nothing of what the page said is on its way any more
    assert await still_open(seat) == [second]
    await expect(page).to_have_title("(1) Quarterdeck")

    # The same in one session: the card stays where it is, settled, and keeps the focus.
    await page.keyboard.press("g")
    await screen.keys_act()
    await page.keyboard.press("y")
    await screen.hears("went on with two")
    await expect(screen.story.locator(".asks-card[data-state='settled']")).to_be_focused()
    for session in (first, second):
        await seat.stop(session)


async def test_a_field_closes_by_escape_and_keeps_its_text_and_always_wants_its_key_twice(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(bash("touch one"), "never said")
    page = screen.page
    await screen.open(session)
    await screen.card.get_by_role("button", name="Edit").click()
    await expect(screen.card.get_by_label("Edited input")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(screen.card).to_be_focused()
    await screen.keys_act()
    await page.keyboard.press("n")
    why = screen.card.get_by_label("Reason (sent to the agent)")
    await expect(why).to_be_focused()
    await expect(why).to_have_value("")  # the key itself is no text
    await expect(page.locator("[data-keys]")).to_have_count(0)
    await page.keyboard.type("rather not")
    await screens(screen, "keys-deny")
    await screen.composer.focus()
    await page.keyboard.press("Escape")
    await expect(why).to_have_count(0)
    assert await still_open(seat) == [session]  # an interrupt would have withdrawn it
    await screen.card.get_by_role("button", name="Deny").click()
    await expect(why).to_have_value("rather not")
    await page.keyboard.press("Escape")
    await screen.composer.focus()
    await page.keyboard.press("Escape")
    await expect(screen.story.locator(".entry-turn[data-failed]")).to_be_visible()
    await seat.turn_ended(session)

    await seat.send(session, bash("touch one"), "went on with one")
    await expect(screen.card).to_contain_text("touch one")
    await expect(page).to_have_title("(1) Quarterdeck")
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("g")
    await screen.keys_act()
    form = screen.card.get_by_role("group", name="Allow for longer")
    await page.keyboard.press("a")
    await expect(form).to_be_visible()
    await screens(screen, "keys-again")
    await screen.check_access()
    await page.keyboard.press("Escape")
    await expect(form).to_have_count(0)
    await screen.keys_act()
    await page.keyboard.press("a")
    await expect(form).to_be_visible()
    assert await still_open(seat) == [session]
    await screen.keys_act()
    await page.keyboard.press("a")
    await screen.hears("went on with one")
    assert [one["scope"] for one in answered(seat, session)] == ["always"]
    await seat.stop(session)
