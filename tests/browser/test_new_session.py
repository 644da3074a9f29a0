"""The dialog that begins a session, as a person uses it."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace
from playwright.async_api import FilePayload, expect

from quarterdeck.config import Settings
from quarterdeck.config.settings import RootSettings
from quarterdeck.protocol.projects import Project
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

    await dialog.get_by_role("combobox", name="Project", exact=True).select_option("house")
    await expect(dialog.get_by_label("Directory")).to_have_value(str(house))
    await dialog.get_by_label("First prompt").fill("what do you see?")
    dot = FilePayload(name="dot.png", mimeType="image/png", buffer=DOT)
    await dialog.get_by_label("Attach image", exact=True).set_input_files([dot])
    await dialog.get_by_label("Name").fill("the first")
    await dialog.get_by_label("Worktree").fill("try-it")
    await dialog.get_by_label("Model").fill("haiku")
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
    await expect(screen.page.get_by_text(shield)).to_be_visible()
    await seat.stop(session)


async def test_what_cannot_be_begun_is_told_in_the_dialog(seat: ApiSeat, phone: Screen) -> None:
    await phone.page.get_by_role("button", name="New session").first.click()
    dialog = phone.page.get_by_role("dialog", name="New session")
    await dialog.get_by_label("Directory").fill("not/absolute")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("absolute")
    await phone.shot("new-session-phone")
    await phone.check_access()
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)
    assert (await seat.ada.get("sessions"))["sessions"] == []
