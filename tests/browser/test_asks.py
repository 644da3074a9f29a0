"""Questions, as a person answers them in the browser, with the mouse or with keys alone."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from quarterdeck.testing import ToolUse
from support.api_client import ApiSeat
from support.browser import Screen
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

COLOUR = "Which colour?"


async def test_a_call_is_allowed_changed_and_denied(seat: ApiSeat, screen: Screen) -> None:
    session = await seat.create(bash("touch one"), "done one")
    await screen.open(session)
    await expect(screen.card).to_contain_text("touch one")
    await expect(screen.page).to_have_title("(1) Quarterdeck")
    await screen.shot("ask-permission")
    await screen.check_access()
    await screen.card.get_by_role("button", name="Allow once").click()
    await screen.hears("done one")
    await expect(screen.story).to_contain_text("Allowed by the owner")
    await expect(screen.page).to_have_title("Quarterdeck")
    assert (seat.work / "one").exists()

    await seat.send(session, bash("touch two"), "changed")
    await screen.card.get_by_role("button", name="Edit").click()
    field = screen.card.get_by_label("Edited input")
    await field.fill('{"command": "touch three"}')
    await screen.shot("ask-edit")
    await screen.card.get_by_role("button", name="Allow edited call").click()
    await screen.hears("changed")
    assert (seat.work / "three").exists()
    assert not (seat.work / "two").exists()

    await seat.send(session, bash("touch four"), "a pity")
    await expect(screen.card).to_contain_text("touch four")
    await screen.card.locator(".asks-heading").click()
    await screen.keys_act()
    await screen.page.keyboard.press("n")
    await expect(screen.card.get_by_label("Reason (sent to the agent)")).to_be_focused()
    await screen.page.keyboard.type("rather not")
    await screen.shot("ask-deny")
    await screen.card.get_by_role("button", name="Deny and continue").click()
    await screen.hears("a pity")
    assert "rather not" in seat.model.turns[-1].last_text
    assert not (seat.work / "four").exists()

    await seat.send(session, bash("touch five"), "never said")
    await screen.card.get_by_role("button", name="Deny").click()
    await screen.card.get_by_role("button", name="Deny and stop").click()
    await expect(screen.story.locator(".entry-turn[data-failed]")).to_be_visible()
    await seat.stop(session)


async def test_a_question_is_answered_in_the_list_and_by_another_device_first(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(bash("touch one"), "done one")
    waits = screen.page.get_by_role("region", name="Waiting for you")
    await expect(waits).to_contain_text("touch one")
    await screen.shot("fleet-waiting")
    await waits.get_by_role("button", name="Allow once").click()
    await seat.turn_ended(session)
    await expect(waits).to_have_count(0)

    await screen.open(session)
    await seat.send(session, bash("touch two"), "done two")
    await expect(screen.card).to_contain_text("touch two")
    [open_] = (await seat.ada.get("asks"))["asks"]
    await seat.answer(open_["opened"], "allow")
    await expect(screen.story).to_contain_text("Allowed by ada")
    await seat.turn_ended(session)
    await seat.stop(session)


async def test_questions_have_choices_several_choices_and_free_words(
    seat: ApiSeat, screen: Screen
) -> None:
    options = [{"label": each, "description": f"like {each}"} for each in ("Red", "Blue")]
    one = {"header": "Colour", "question": COLOUR, "multiSelect": False, "options": options}
    many = {"header": "Who", "question": "Who helps?", "multiSelect": True, "options": options}
    call = ToolUse("AskUserQuestion", {"questions": [one, many]})
    session = await seat.create(call, "I see")
    await screen.open(session)
    card = screen.card
    await expect(card.get_by_role("button", name="Answer")).to_be_disabled()
    await card.get_by_role("radio", name="Blue").check()
    await card.get_by_role("checkbox", name="Red").check()
    await card.get_by_label("Other answer to: Who helps?").fill("Ada")
    await screen.shot("ask-questions")
    await screen.check_access()
    await card.get_by_role("button", name="Answer").click()
    await screen.hears("I see")
    said = seat.model.turns[-1].last_text
    assert f'"{COLOUR}"="Blue"' in said
    assert "Red" in said
    assert "Ada" in said

    await seat.send(session, call, "I see that too")
    await screen.card.get_by_role("button", name="Skip").click()
    await screen.hears("I see that too")
    await seat.stop(session)


async def test_keys_go_from_question_to_question_and_answer_them(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(bash("touch one"), "done one")
    page = screen.page
    waits = page.get_by_role("region", name="Waiting for you")
    await expect(waits).to_contain_text("touch one")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await screen.shot("keys")
    await screen.check_access()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("g")
    await expect(waits.locator(".asks-card")).to_be_focused()
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await screen.check_access()
    await screen.shot("ask-dark")
    await screen.keys_act()
    # There is a moment to take an answer by key back; then the keys act again.
    await page.evaluate("localStorage.setItem('quarterdeck.undo', '10')")
    await page.keyboard.press("y")
    await screen.shot("ask-undo")
    await screen.check_access()
    await waits.get_by_role("button", name="Undo").click()
    await screen.keys_act()
    assert len((await seat.ada.get("asks"))["asks"]) == 1
    await page.keyboard.press("y")
    await waits.get_by_role("button", name="Send now").click()
    await seat.turn_ended(session)
    assert (seat.work / "one").exists()
    await screen.open(session)
    await page.keyboard.press("c")
    await expect(screen.composer).to_be_focused()
    await seat.stop(session)
