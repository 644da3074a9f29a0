"""What stands beside a session: files, context, MCP servers, raw events."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.async_api import expect

from quarterdeck.testing import ToolUse, play
from support import mcp_server
from support.api_client import ApiSeat
from support.browser import Screen
from support.repositories import commit, git
from support.scenes import write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_the_panels_show_files_context_servers_and_events(
    seat: ApiSeat, screen: Screen
) -> None:
    (seat.work / "app.py").write_text("def greet():\n    return 'helo'\n")
    git(seat.work, "init", "-q")
    git(seat.work, "config", "user.email", "ada@example.org")
    git(seat.work, "config", "user.name", "Ada")
    commit(seat.work, "begin")
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
    await page.get_by_role("tab", name="Files").click()
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

    # The raw events are for those who look for them, and no tab beside the others.
    await expect(page.get_by_role("tab", name="Raw")).to_have_count(0)
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Raw events").click()
    await expect(page.get_by_role("tab", name="Raw")).to_be_visible()
    await panel.get_by_label("Event kind").select_option("turn.ended")
    await expect(panel.locator("details")).to_have_count(1)
    await panel.locator("summary").click()
    await expect(panel.locator(".card-raw")).to_contain_text('"outcome": "completed"')
    await screen.shot("panel-raw")
    await screen.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await screen.check_access()
    await seat.stop(session)
