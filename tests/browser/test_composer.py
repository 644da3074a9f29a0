"""Writing to an agent: several lines, commands, files, pictures, the queue, and switches."""

from __future__ import annotations

import base64

import pytest
from playwright.async_api import expect

from quarterdeck.testing import Text, play, reply
from support.api_client import ApiSeat
from support.browser import Screen
from support.pictures import png

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


async def test_a_prompt_has_lines_history_commands_files_and_pictures(
    seat: ApiSeat, screen: Screen
) -> None:
    (seat.work / "notes.md").write_text("some notes\n")
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

    await write.type("/comp")
    menu = screen.page.get_by_role("listbox", name="Suggestions")
    await expect(menu.get_by_role("option").first).to_contain_text("compact")
    await screen.shot("composer-commands")
    await screen.check_access()
    await write.press("Tab")
    await expect(write).to_have_value("/compact ")
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
    await screen.page.get_by_label("Attach image").set_input_files(
        {"name": "chosen.png", "mimeType": "image/png", "buffer": png()}
    )
    for name in ("paste.png", "drop.png", "chosen.png"):
        await expect(screen.page.get_by_role("img", name=name)).to_be_visible()
    await screen.page.get_by_role("button", name="Remove drop.png").click()
    await screen.shot("composer-pictures")
    await write.press("Enter")
    await screen.hears("echo: [Image")
    await expect(screen.story.locator(".entry-prompt").last.get_by_role("img")).to_have_count(2)
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

    await screen.page.get_by_label("Mode", exact=True).select_option("acceptEdits")
    await expect(screen.page.get_by_label("Mode", exact=True)).to_have_value("acceptEdits")
    await screen.page.get_by_label("Model").select_option("haiku")
    await screen.page.get_by_label("Thinking").select_option("Thinking: off")
    await screen.say(play("as another model"))
    await screen.hears("as another model")
    assert "haiku" in seat.model.turns[-1].model
    await expect(screen.page.get_by_label("Model")).to_have_value(seat.model.turns[-1].model)
    await seat.stop(session)
