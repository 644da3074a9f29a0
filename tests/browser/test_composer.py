"""Writing to an agent: several lines, commands, files, pictures, the queue, and switches."""

from __future__ import annotations

import base64
import re

import pytest
from playwright.async_api import Browser, FilePayload, expect

from quarterdeck.testing import Text, play, reply
from support.api_client import ApiSeat
from support.browser import PHONE, Screen
from support.pictures import png
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

GIVE = """([field, how, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], `${how}.png`, { type: "image/png" }));
  const event = how === "paste"
    ? new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true });
  field.dispatchEvent(event);
}"""


PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"


async def test_a_prompt_has_lines_history_commands_files_and_pictures(
    seat: ApiSeat, screen: Screen
) -> None:
    (seat.work / "notes.md").write_text("some notes\n")
    commands = seat.work / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "tidy.md").write_text("---\ndescription: Tidy up\n---\nTidy up.\n")
    session = await seat.create("ready")
    await seat.turn_ended(session)
    await screen.open(session)
    await screen.hears("ready")
    write = screen.composer
    await write.fill("first line")
    await write.press("Shift+Enter")
    await write.type("second line")
    await write.press("Enter")
    sent = screen.story.locator(".entry-prompt").last
    await expect(sent).to_contain_text("first line\nsecond line", use_inner_text=True)
    await expect(write).to_have_value("")
    await seat.turn_ended(session)

    await write.press("ArrowUp")
    assert "first line\nsecond line" in await write.input_value()
    await write.press("ArrowUp")
    await write.press("ArrowDown")
    await write.press("ArrowDown")
    await expect(write).to_have_value("")

    await write.type("/")
    menu = screen.page.get_by_role("listbox", name="Suggestions")
    await expect(menu.get_by_role("option").first).to_contain_text("tidyown")
    assert await menu.get_by_text("(removed)").count() == 0
    assert await menu.get_by_text("__").count() == 0
    await write.type("comp")
    await expect(menu.get_by_role("option").first).to_contain_text("compact<optional")
    await screen.shot("composer-commands")
    await screen.check_access()
    await write.press("Tab")
    await expect(write).to_have_value("/compact ")
    await expect(screen.page.get_by_text("/compact <optional")).to_be_visible()
    await write.fill("look at ")
    await write.type("@not")
    await expect(menu.get_by_role("option").first).to_contain_text("notes.md")
    await screen.shot("composer-files")
    await write.press("Enter")
    await expect(write).to_have_value("look at @notes.md ")

    await write.fill("what do you see?")
    handle = await write.element_handle()
    picture = base64.b64encode(png()).decode()
    for how in ("paste", "drop"):
        await screen.page.evaluate(GIVE, [handle, how, picture])
    files: list[FilePayload] = [
        {"name": "chosen.png", "mimeType": "image/png", "buffer": png()},
        {"name": "notes.md", "mimeType": "", "buffer": "Grüße".encode()},
        {"name": "paper.pdf", "mimeType": "application/pdf", "buffer": PDF},
        {"name": "fake.png", "mimeType": "image/png", "buffer": b"no image"},
    ]
    await screen.page.get_by_label("Attach files").set_input_files(files)
    attached = screen.page.get_by_role("list", name="Attachments")
    await expect(attached.get_by_role("listitem")).to_have_count(5)
    refused = screen.page.get_by_role("alert").filter(has_text="fake.png: the content is not PNG")
    await expect(refused).to_be_visible()
    for name in ("paste.png", "drop.png", "chosen.png"):
        await expect(screen.page.get_by_role("img", name=name)).to_be_visible()
    await screen.page.get_by_role("button", name="Remove drop.png").click()
    await screen.shot("composer-pictures")
    await write.press("Enter")
    await screen.hears("echo: ")
    await expect(screen.story.locator(".entry-prompt").last.get_by_role("img")).to_have_count(2)
    await seat.turn_ended(session)
    given = seat.model.turns[-1].body.decode()
    assert "Grüße" in given
    assert base64.b64encode(PDF).decode() in given

    # A file of another kind is stored in the session's folder, and named in the prompt.
    await screen.page.get_by_label("Attach files").set_input_files(
        {"name": "my data.bin", "mimeType": "", "buffer": b"\x00\x01"}
    )
    await expect(write).to_have_value(re.compile(r"^@uploads/\S+-my-data\.bin $"))
    assert (seat.work / (await write.input_value()).strip("@ ")).read_bytes() == b"\x00\x01"
    await write.fill("")

    # Prompts are saved, found and used again.
    await write.fill("Review the changes with care.")
    await screen.page.get_by_role("button", name="Saved and earlier prompts").click()
    prompts = screen.page.get_by_role("dialog", name="Prompts")
    await prompts.get_by_label("Name of the saved prompt").fill("Review")
    await prompts.get_by_role("button", name="Save this prompt").click()
    await expect(prompts.get_by_role("button", name="Review only for you")).to_be_visible()
    await expect(prompts.get_by_role("region", name="Earlier prompts")).to_contain_text("what do")
    await screen.shot("composer-prompts")
    await screen.check_access()
    await screen.page.keyboard.press("Escape")
    await write.fill("")
    await screen.page.get_by_role("button", name="Saved and earlier prompts").click()
    await prompts.get_by_label("Filter").fill("revi")
    await prompts.get_by_role("button", name="Review only for you").click()
    await expect(write).to_have_value("Review the changes with care.")
    await write.fill("")
    await screen.page.get_by_role("button", name="Saved and earlier prompts").click()
    await prompts.get_by_role("button", name="Delete Review").click()
    await expect(prompts.get_by_text("No saved prompt yet")).to_be_visible()
    await seat.stop(session)


async def test_prompts_are_queued_changed_and_taken_back_and_the_turn_is_interrupted(
    seat: ApiSeat, screen: Screen
) -> None:
    session = await seat.create(reply(Text("so and so ", times=3000, delay=0.02)))
    await screen.open(session)
    await expect(screen.story.locator(".markdown-prose[data-live]")).to_be_visible()
    await screen.say("not this one")
    await screen.say("nor as it stands")
    queue = screen.page.get_by_role("list", name="Queued prompts")
    await expect(queue.get_by_role("listitem")).to_have_count(2)
    await queue.get_by_role("listitem").first.get_by_role("button", name="Cancel").click()
    await expect(queue.get_by_role("listitem")).to_have_count(1)
    await queue.get_by_role("button", name="Edit").click()
    await queue.get_by_label("Edit prompt").fill(play("as it was changed"))
    await screen.shot("composer-queue")
    await screen.check_access()
    await queue.get_by_role("button", name="Save").click()
    await expect(queue).to_contain_text("as it was changed")
    await screen.page.get_by_role("button", name="Interrupt").click()
    await screen.hears("as it was changed")
    await expect(queue).to_have_count(0)
    await expect(screen.story.locator(".entry-prompt[data-stage=cancelled]")).to_contain_text(
        "not this"
    )

    await seat.stop(session)


async def test_a_finger_writes_lines_steers_a_turn_and_finds_commands_in_its_middle(
    seat: ApiSeat, browser: Browser
) -> None:
    session = await seat.create(bash("touch begun"), reply(Text("word ", times=2000, delay=0.02)))
    await seat.answer(await seat.ask(session), "allow")
    context = await browser.new_context(
        viewport={"width": PHONE["width"], "height": PHONE["height"]},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    try:
        screen = Screen(await context.new_page(), seat.deck)
        await screen.login()
        await screen.load(session)  # in the middle of a turn
        write, page = screen.composer, screen.page
        await write.type("/comp")
        menu = page.get_by_role("listbox", name="Suggestions")
        await expect(menu.get_by_role("option").first).to_contain_text("compact")
        assert await page.get_by_role("button", name="Steer").count() == 0  # a command cannot
        await write.fill("")
        await write.type("first line")
        await write.press("Enter")
        await write.type("second line")
        await expect(write).to_have_value("first line\nsecond line")
        size = await write.evaluate("field => parseFloat(getComputedStyle(field).fontSize)")
        assert size >= 16
        await screen.shot("composer-steer-phone")
        await page.get_by_role("button", name="Steer").click()
        await expect(write).to_have_value("")
        await expect(
            screen.story.locator(".entry-prompt").filter(has_text="second line")
        ).to_be_visible()
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"]
        assert not screen.complaints, screen.complaints
    finally:
        await context.close()
    await seat.stop(session)
