"""The dialog that begins a session, as a person uses it."""

from __future__ import annotations

import base64
import os

import pytest
from msgspec.structs import replace
from playwright.async_api import FilePayload, expect

from quarterdeck.config import Settings
from quarterdeck.config.settings import RootSettings
from quarterdeck.protocol.projects import Project
from quarterdeck.testing import play
from support.api_client import ApiSeat
from support.browser import Screen
from support.repositories import make_repository

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_session_is_begun_in_a_worktree_with_a_picture_and_a_budget(
    seat: ApiSeat, screen: Screen
) -> None:
    house = make_repository(seat.work / "house")
    (seat.work / "garden").mkdir()
    seat.deck.take(
        replace(
            Settings(),
            roots=RootSettings(directories=(str(seat.work),)),
            projects={"house": Project(directory=str(house), model="opus")},
        )
    )
    await screen.page.get_by_role("button", name="New session").first.click()
    dialog = screen.page.get_by_role("dialog", name="New session")
    await dialog.get_by_role("button", name="Browse").click()
    folders = dialog.get_by_role("region", name="Folders")
    await folders.get_by_role("button", name=str(seat.work), exact=True).click()
    await expect(folders.get_by_role("button")).to_have_text(["Up", "garden", "housegit"])
    await folders.get_by_role("button", name="house").click()
    await expect(dialog.get_by_label("Directory")).to_have_value(str(house))
    await screen.shot("new-session-folders")
    await screen.check_access()
    await dialog.get_by_label("Directory").fill("/etc")
    await expect(folders.get_by_role("alert")).to_be_visible()
    screen.complaints.clear()  # the browser tells of the refusal, which was wanted
    await dialog.get_by_role("button", name="Browse").click()

    await dialog.get_by_role("button", name="house project").click()
    await expect(dialog.get_by_label("Directory")).to_have_value(str(house))
    await dialog.get_by_label("First prompt").fill("what do you see?")
    dot = FilePayload(name="dot.png", mimeType="image/png", buffer=DOT)
    await dialog.get_by_label("Attach files", exact=True).set_input_files([dot])
    await dialog.locator("summary", has_text="More").click()
    await dialog.get_by_label("Name", exact=True).fill("the first")
    await dialog.get_by_label("Worktree").fill("try-it")
    await dialog.get_by_label("Model", exact=True).fill("haiku")
    await dialog.get_by_role("combobox", name="Mode", exact=True).select_option("acceptEdits")
    await dialog.get_by_role("combobox", name="Effort", exact=True).select_option("low")
    await dialog.get_by_label("Budget").fill("2.50")
    await dialog.get_by_role("combobox", name="Policy", exact=True).select_option("careful")
    await dialog.get_by_role("combobox", name="Sandbox", exact=True).select_option("protect")
    await screen.shot("new-session")
    await dialog.get_by_role("button", name="Start").click()

    await screen.hears("echo: [Image")  # the CLI tells the model of the picture last
    await expect(screen.page.get_by_role("heading", name="the first")).to_be_visible()
    await expect(screen.story.get_by_alt_text("attached to the prompt")).to_be_visible()
    session = screen.page.url.rpartition("/")[2]
    made = await seat.ada.get(f"sessions/{session}")
    spec = made["spec"]
    assert spec["budget"]["session_usd"] == 2.5
    wanted = {
        "project": "house",
        "model": "haiku",
        "mode": "acceptEdits",
        "effort": "low",
        "policy": "careful",
        "worktree": "try-it",
        "sandbox": "protect",
    }
    assert {name: spec[name] for name in wanted} == wanted
    assert made["directory"] != str(house)
    shield = "Sandbox: protect" if made["sandbox"].get("mode") == "protect" else "No sandbox"
    await expect(screen.page.get_by_text(shield).first).to_be_visible()
    await seat.stop(session)


async def test_what_cannot_be_begun_is_told_in_the_dialog(seat: ApiSeat, phone: Screen) -> None:
    await phone.page.get_by_role("button", name="New session").first.click()
    dialog = phone.page.get_by_role("dialog", name="New session")
    await dialog.get_by_label("Directory").fill("not/absolute")
    start = dialog.get_by_role("button", name="Start")
    before = phone.page.viewport_size
    assert before is not None
    # A small phone, whose browser has bars above and below the page.
    await phone.page.set_viewport_size({"width": 390, "height": 664})
    box = await start.bounding_box()
    assert box is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 664
    await phone.page.set_viewport_size(before)
    await start.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("absolute")
    await phone.shot("new-session-phone")
    await phone.check_access()
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)
    assert (await seat.ada.get("sessions"))["sessions"] == []


async def test_a_template_fills_the_form_several_start_at_once_and_their_results_are_compared(
    seat: ApiSeat, screen: Screen
) -> None:
    make_repository(seat.work / "house")
    first = await seat.create("done before")  # its folder is a recent one
    await seat.turn_ended(first)
    page = screen.page
    await page.get_by_role("button", name="New session").first.click()
    dialog = page.get_by_role("dialog", name="New session")
    await expect(dialog.get_by_label("First prompt")).to_be_focused()
    recent = dialog.get_by_role("group", name="Recent folders").get_by_role("button", name="work")
    await expect(recent).to_have_attribute("aria-pressed", "true")
    await dialog.get_by_label("Directory").fill(str(seat.work / "house"))
    await dialog.get_by_label("First prompt").fill(play("the result"))
    await dialog.locator("summary", has_text="More").click()
    await dialog.get_by_role("combobox", name="Mode", exact=True).select_option("acceptEdits")
    await dialog.get_by_label("Name of the template").fill("Build it")
    await dialog.get_by_role("button", name="Save as template").click()
    await expect(dialog.get_by_text("Saved.")).to_be_visible()
    await dialog.get_by_role("button", name="Cancel").click()

    await page.get_by_role("button", name="New session").first.click()
    await dialog.get_by_role("button", name="Use the template Build it", exact=True).click()
    await expect(dialog.get_by_label("Directory")).to_have_value(str(seat.work / "house"))
    await expect(dialog.get_by_text("sets more than the place")).to_be_visible()
    mode = dialog.get_by_role("combobox", name="Mode", exact=True)
    await expect(mode).to_have_value("acceptEdits")
    await dialog.get_by_label("Models to compare").fill("haiku, sonnet")
    await screen.shot("new-session-several")
    await screen.check_access()
    await dialog.get_by_role("button", name="Start 2 sessions").click()

    await page.wait_for_url("**/compare?*")
    columns = page.get_by_role("article")
    await expect(columns).to_have_count(2)
    for model in ("haiku", "sonnet"):
        column = columns.filter(has_text=f"-{model}")
        await expect(column.get_by_role("region", name="Last answer")).to_contain_text("the result")
        await expect(column).to_contain_text("idle", ignore_case=True)
    await screen.shot("compare")
    await screen.check_access()
    await columns.first.get_by_role("link", name="See the changes").click()
    await page.wait_for_url("**/s/*?panel=files*")
    sessions = (await seat.ada.get("sessions"))["sessions"]
    trees = {one["spec"].get("worktree") for one in sessions} - {None}
    assert len(trees) == 2
    for one in sessions:
        await seat.stop(one["session"])
    await page.get_by_role("button", name="New session").first.click()
    await dialog.get_by_role("button", name="Delete the template Build it").click()
    await expect(dialog.get_by_role("group", name="Templates")).to_have_count(0)


async def test_a_conversation_on_disk_is_found_imported_and_goes_on(
    seat: ApiSeat, phone: Screen
) -> None:
    session = await seat.create("said in a terminal")
    await seat.turn_ended(session)
    await seat.stop(session)
    await seat.ada.delete(f"sessions/{session}")  # the hub knows nothing of it; the disk does
    # What was written just now may still run in a terminal, and is not continued.
    for file in (seat.home / ".claude" / "projects").rglob("*.jsonl"):
        os.utime(file, (1.7e9, 1.7e9))
    page = phone.page
    await page.get_by_role("button", name="New session").first.click()
    dialog = page.get_by_role("dialog", name="New session")
    await dialog.get_by_role("button", name="Continue from disk").click()
    row = dialog.get_by_role("list", name="Conversations on disk").get_by_role("listitem")
    await expect(row.filter(has_text=str(seat.work))).to_have_count(1)
    await phone.shot("new-session-disk-phone")
    await phone.check_access()
    await row.filter(has_text=str(seat.work)).get_by_role("button", name="Continue").click()
    await phone.hears("said in a terminal")
    await phone.say(play("and it goes on"))
    await phone.hears("and it goes on")
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    for one in (await seat.ada.get("sessions"))["sessions"]:
        await seat.stop(one["session"])
