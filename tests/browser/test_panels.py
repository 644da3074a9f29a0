"""What stands beside a session: files, context, MCP servers, raw events."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.async_api import expect

from quarterdeck.testing import ToolUse, fake, play
from support import mcp_server
from support.api_client import ApiSeat
from support.browser import Screen
from support.repositories import git, make_repository
from support.runners import program
from support.scenes import write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_the_panels_show_files_context_servers_and_events(
    seat: ApiSeat, screen: Screen
) -> None:
    (seat.work / "app.py").write_text("def greet():\n    return 'helo'\n")
    server = {"type": "stdio", "command": sys.executable, "args": [str(Path(mcp_server.__file__))]}
    spec = {
        "directory": str(seat.work),
        "mode": "acceptEdits",
        "mcp_servers": {"clock": server},
    }
    edit: dict[str, object] = {
        "file_path": str(seat.work / "app.py"),
        "old_string": "helo",
        "new_string": "hello",
    }
    look = ToolUse("Read", {"file_path": str(seat.work / "app.py")})
    prompt = play(write(seat.work / "new.txt"), look, ToolUse("Edit", edit), "all written")
    session = str((await seat.ada.post("sessions", spec=spec, prompt=prompt))["session"])
    await screen.open(session)
    await screen.hears("all written")
    page = screen.page
    await page.get_by_role("button", name="Panels").click()
    panel = page.get_by_role("tabpanel")
    await expect(panel.locator("summary")).to_have_count(2)
    await panel.locator("summary", has_text="app.py").click()
    await expect(panel.locator(".code-diff", has_text="return 'hello'")).to_be_visible()
    await screen.shot("panel-files")
    await screen.check_access()

    await page.get_by_role("tab", name="Context").click()
    await expect(panel.get_by_role("img")).to_be_visible()
    await expect(panel).to_contain_text("tokens")
    await screen.shot("panel-context")
    await screen.check_access()

    await page.get_by_role("tab", name="MCP").click()
    await expect(panel).to_contain_text("connected")
    await panel.get_by_text("1 tool").click()
    await expect(panel).to_contain_text("now")
    await screen.shot("panel-mcp")
    await screen.check_access()
    await panel.get_by_role("button", name="Disable").click()
    await expect(panel).to_contain_text("disabled")
    await panel.get_by_role("button", name="Enable").click()
    await expect(panel.get_by_role("button", name="Disable")).to_be_visible()
    await panel.get_by_role("button", name="Reconnect").click()
    await expect(panel).to_contain_text("connected")

    await page.get_by_role("tab", name="Raw").click()
    await panel.get_by_label("Event kind").select_option("turn.ended")
    await expect(panel.locator("details")).to_have_count(1)
    await panel.locator("summary").click()
    await expect(panel.locator(".raw")).to_contain_text('"outcome": "completed"')
    await screen.shot("panel-raw")
    await screen.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await screen.check_access()
    await seat.stop(session)


async def test_a_worktree_is_looked_at_kept_merged_and_discarded(
    seat: ApiSeat, screen: Screen
) -> None:
    house = make_repository(seat.work / "house")
    claude = program(seat.home / "fake", [fake.Initialize(), fake.Serve()])
    spec = {"directory": str(house), "worktree": "try-it", "claude": claude}
    session = str((await seat.ada.post("sessions", spec=spec, prompt="begin"))["session"])
    tree = Path((await seat.state(session, "idle"))["directory"])
    assert tree != house
    (tree / "readme").write_text("one\ntwo\nthree and a half\n")
    await screen.open(session)
    page = screen.page
    await page.get_by_role("button", name="Panels").click()
    card = page.get_by_role("tabpanel").get_by_role("region", name="Worktree")
    await expect(card.get_by_role("heading")).to_have_text("Worktree try-it")
    await expect(card).to_contain_text("1 file changed since")
    await expect(card).to_contain_text("of main, 1 not committed")
    await card.get_by_text("Full diff").click()
    await expect(card.locator(".code-terminal")).to_contain_text("+three and a half")
    await screen.shot("panel-worktree")
    await screen.check_access()
    await card.get_by_role("button", name="Keep").click()
    await expect(card.get_by_role("status")).to_contain_text("The branch try-it is kept")

    await card.get_by_role("button", name="Merge").click()
    await expect(card.get_by_role("alert")).to_contain_text("not committed in")
    screen.complaints.clear()  # the browser tells of the refusal, which was wanted
    await card.get_by_label("Commit message for uncommitted changes").fill("Say more")
    await card.get_by_role("button", name="Merge").click()
    await expect(card.get_by_role("status")).to_contain_text("try-it is merged into main")
    assert git(house, "log", "-1", "--format=%s") == "Say more"
    assert "three and a half" in (house / "readme").read_text()
    await expect(card).to_contain_text("0 files changed since")

    (tree / "readme").write_text("nothing\n")
    await seat.stop(session)
    page.once("dialog", lambda dialog: dialog.accept())
    await card.get_by_role("button", name="Discard").click()
    await expect(card.get_by_role("status")).to_contain_text("The work is saved")
    await expect(card.get_by_role("button")).to_have_count(0)
    assert str(tree) not in git(house, "worktree", "list")
    await expect(screen.story.locator(".note", has_text="The work is saved")).to_be_visible()
    await screen.shot("panel-worktree-gone")
