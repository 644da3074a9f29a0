"""Reviewing work in the page: diffs, comments, undo, commit, push, worktrees, files, going back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from quarterdeck.testing import fake, play
from support.api_client import ApiSeat
from support.browser import PHONE, Screen
from support.repositories import commit, git, make_repository
from support.runners import program
from support.scenes import bash, write
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

OVERFLOW = """() => [...document.querySelectorAll('main *')].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!box.width || !box.height) return false;
  for (let up = one.parentElement; up; up = up.parentElement) {
    const style = getComputedStyle(up);
    if (['auto', 'scroll', 'hidden', 'clip'].includes(style.overflowX)) return false;
  }
  return box.right > innerWidth + 1 || box.left < -1;
}).map((one) => one.outerHTML.slice(0, 120))"""


async def fake_session(seat: ApiSeat, directory: Path, **more: object) -> str:
    """A session of the fake CLI, which does nothing: the test is the agent's shell."""
    claude = program(seat.home / "fake", [fake.Initialize(), fake.Serve()])
    spec = {"directory": str(directory), "claude": claude, **more}
    session = str((await seat.ada.post("sessions", spec=spec, prompt="begin"))["session"])
    await seat.state(session, "idle")
    return session


async def fits(page: Page) -> None:
    """Nothing is beyond the edge of the screen."""
    assert await page.evaluate(OVERFLOW) == []


async def test_changes_of_any_folder_are_reviewed_commented_undone_committed_and_pushed(
    seat: ApiSeat, screen: Screen
) -> None:
    project = make_repository(seat.work / "project")
    there = seat.work / "there.git"
    git(seat.work, "init", "-q", "--bare", str(there))
    git(project, "remote", "add", "origin", str(there))
    lines = [f"value_{number} = {number}  # a line" for number in range(200)]
    (project / "app.py").write_text("\n".join(lines) + "\n")
    commit(project, "app")
    (project / "mine").write_text("before the session\n")
    session = await fake_session(seat, project)
    lines[20] = '"""A text'
    lines[21] = 'over two lines."""'
    lines[150:150] = ["def added() -> None:", "    print('<b>&amp;</b>')"]
    (project / "app.py").write_text("\n".join(lines) + "\n")
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / ("long_name_" * 8 + ".txt")).write_text("x" * 600 + "\n")
    (project / ".env").write_text("KEY=hunter2\n")
    page = screen.page

    await screen.open(session)
    await page.goto(f"{seat.deck.address}/changes/{session}")
    files = page.get_by_role("navigation", name="Changed files")
    await expect(files.get_by_role("button")).to_have_count(3)
    await expect(page.get_by_text("since the session started")).to_be_visible()
    await files.get_by_role("button", name="app.py").click()
    diff = page.get_by_role("region", name="Changes of app.py")
    await expect(diff).to_contain_text("over two lines.")
    await expect(diff).to_contain_text("print('<b>&amp;</b>')")
    await expect(diff.get_by_text("17 unchanged lines")).to_be_visible()
    await expect(diff.locator("[style*='--shiki-light']").first).to_be_visible()
    await screen.shot("changes-unified")
    await screen.check_access()
    await fits(page)
    await diff.get_by_role("button", name="Show all").first.click()
    await expect(diff.get_by_text("value_0 = 0")).to_be_visible()

    # Closed files are listed, and not shown.
    await files.get_by_role("button", name=".env").click()
    await expect(page.get_by_text("The policy closes this file")).to_be_visible()
    assert "hunter2" not in await page.content()
    await files.get_by_role("button", name="app.py").click()

    # Comments become one prompt, shown before it is sent.
    await diff.get_by_role("button", name="Comment on line 22", exact=True).click()
    await page.get_by_placeholder("Your comment").fill("Why two lines? a g s")
    await page.get_by_role("button", name="Keep comment").click()
    await page.get_by_role("button", name="Review and send").click()
    dialog = page.get_by_role("dialog")
    prompt = dialog.get_by_role("textbox")
    await expect(prompt).to_have_value(
        "Please address these review comments:\n\napp.py:22\n"
        '> over two lines."""\nWhy two lines? a g s'
    )
    await screen.shot("changes-prompt")
    await dialog.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("The comments were sent")).to_be_visible()

    # Side by side, and one block is undone.
    await page.get_by_role("combobox", name="Layout").click()
    await page.get_by_role("option", name="Side by side").click()
    await expect(diff).to_have_attribute("data-layout", "split")
    await screen.shot("changes-split")
    await screen.check_access()
    await diff.get_by_role("button", name="Undo this change").first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Undo change").click()
    await expect(page.get_by_role("status")).to_contain_text("Undone: 1 changed place of app.py")
    assert "value_20 = 20" in (project / "app.py").read_text()
    assert "def added" in (project / "app.py").read_text()
    await expect(diff.get_by_text("A text")).to_have_count(0)

    # Commit two files, and push.
    await page.get_by_role("button", name="Commit …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("checkbox", name="Stage app.py").click()
    await dialog.get_by_label("Message").fill("Add it")
    await screen.shot("changes-commit")
    await dialog.get_by_role("button", name="Commit 1 staged file").click()
    await expect(page.get_by_role("status")).to_contain_text("Add it")
    assert git(project, "log", "-1", "--format=%s") == "Add it"
    await page.get_by_role("button", name="Push …").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text(str(there))
    await expect(dialog).to_contain_text("It runs no hook")
    await screen.shot("changes-push")
    await dialog.get_by_role("button", name="Push", exact=True).click()
    await expect(dialog.get_by_role("status")).to_contain_text("Pushed main")
    assert git(there, "log", "-1", "--format=%s", "main") == "Add it"
    await page.keyboard.press("Escape")

    # The files, read only; and the phone.
    await page.get_by_role("tab", name="Files").click()
    tree = page.get_by_role("navigation", name="Files")
    await tree.get_by_role("button", name="inner").click()
    await tree.get_by_role("button", name="file", exact=True).click()
    await expect(page.get_by_role("region", name="Contents of inner/file")).to_contain_text("text")
    await tree.get_by_label("Search files").fill("def added")
    await page.get_by_role("combobox", name="Search").click()
    await page.get_by_role("option", name="in contents").click()
    await tree.get_by_role("button", name="app.py").click()
    shown = page.get_by_role("region", name="Contents of app.py")
    await expect(shown.locator("[data-wanted]")).to_contain_text("def added")
    link = page.get_by_role("link", name="Open in editor")
    assert await link.get_attribute("href") == f"vscode://file{project}/app.py:151"
    await screen.shot("changes-files")
    await screen.check_access()
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await fits(page)
    await page.goto(f"{seat.deck.address}/changes/{session}")
    await expect(files.get_by_role("button")).to_have_count(3)
    for name in ("Commit …", "Push …"):  # under the thumb, in the last eighth of the screen
        box = await page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert PHONE["height"] * 7 / 8 <= box["y"] <= PHONE["height"] - box["height"], name
    await screen.shot("changes-phone-list")
    await fits(page)
    await files.get_by_role("button", name="app.py").click()
    await expect(diff).to_contain_text("def added")
    await expect(files).to_be_hidden()
    await screen.shot("changes-phone-file")
    await fits(page)
    await screen.check_access()
    events = [
        event["event"] for event in (await seat.ada.get(f"sessions/{session}/events"))["events"]
    ]
    acts = [event["action"] for event in events if event["kind"] == "folder.changed"]
    assert acts == ["revert", "stage", "commit", "push"]
    await seat.stop(session)


async def test_a_worktree_is_kept_merged_and_discarded_after_it_was_said_what_happens(
    seat: ApiSeat, screen: Screen
) -> None:
    project = make_repository(seat.work / "project")
    session = await fake_session(seat, project, worktree="try-it")
    tree = Path((await seat.state(session, "idle"))["directory"])
    (tree / "readme").write_text("one\ntwo\nthree and a half\n")
    page = screen.page
    await screen.open(session)
    await page.goto(f"{seat.deck.address}/changes/{session}")
    await expect(page.get_by_text("since the branch left its base")).to_be_visible()
    await page.get_by_role("button", name="Keep").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("The branch try-it is kept")
    await dialog.get_by_role("button", name="Keep").click()
    await page.get_by_role("button", name="Merge …").click()
    await expect(dialog).to_contain_text("0 commits of try-it will be merged into main. First, 1")
    await screen.shot("changes-merge")
    await dialog.get_by_label("Commit message").fill("Say more")
    await dialog.get_by_role("button", name="Merge").click()
    await expect(page.get_by_role("status")).to_contain_text("try-it is merged into main")
    assert git(project, "log", "-1", "--format=%s") == "Say more"
    assert "three and a half" in (project / "readme").read_text()
    await expect(page.get_by_text("Nothing has changed.")).to_be_visible()
    (tree / "readme").write_text("nothing\n")
    await seat.stop(session)
    await page.get_by_role("button", name="Discard …").click()
    await expect(dialog).to_contain_text("will be removed. It has 1 uncommitted file.")
    await dialog.get_by_role("button", name="Discard").click()
    await expect(page.get_by_role("status")).to_contain_text("The work is saved")
    assert str(tree) not in git(project, "worktree", "list")


async def test_a_prompt_is_sent_again_in_a_fork_and_files_and_conversation_go_back(
    seat: ApiSeat, screen: Screen
) -> None:
    project = make_repository(seat.work / "project")
    made = project / "made"
    spec = {"directory": str(project), "mode": "acceptEdits"}
    first = play("hello")
    session = str((await seat.ada.post("sessions", spec=spec, prompt=first))["session"])
    await seat.state(session, "idle")
    page = screen.page
    await screen.open(session)
    await screen.say(play(write(made, "one\n"), "it is made"))
    await screen.hears("it is made")
    await seat.state(session, "idle")
    assert made.exists()
    place = page.get_by_role("button", name="project ⎇")
    await expect(place).to_have_text("project ⎇ main")
    menu = page.get_by_role("button", name="What to do with this prompt").last
    await menu.click()
    await expect(page.get_by_role("menuitem", name="Fork here")).to_be_visible()
    await screen.shot("prompt-actions")

    # A dry run first, which changes nothing; then both go back.
    await page.get_by_role("menuitem", name="Rewind both").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 file will be put back")
    await expect(dialog).to_contain_text(str(made))
    await expect(dialog).to_contain_text("The agent forgets this prompt")
    await screen.shot("rewind-dialog")
    assert made.exists()
    await dialog.get_by_role("button", name="Rewind", exact=True).click()
    await expect(dialog).to_have_count(0)
    await until(lambda: not made.exists())
    await expect(screen.story).to_contain_text(
        "went back to before a prompt: files and conversation"
    )

    # The first prompt is changed and sent again in a fork.
    await menu.click()
    await page.get_by_role("menuitem", name="Edit and send again").click()
    git(project, "checkout", "-q", "-b", "other")
    await dialog.get_by_role("textbox").fill(play(bash("true"), "in the fork"))
    await dialog.get_by_role("button", name="Send").click()
    await expect(screen.story).to_contain_text("in the fork")
    fork = page.url.rpartition("/")[2]
    assert fork != session
    await expect(place).to_have_text("project ⎇ other")
    await page.goto(f"{seat.deck.address}/changes/{session}?part=checkpoints")
    points = page.get_by_role("region", name="Checkpoints")
    await expect(points.get_by_role("listitem")).to_have_count(2)
    await expect(points.get_by_role("listitem").first).to_contain_text("rewound")
    await screen.shot("checkpoints")
    await screen.check_access()
    (project / "readme").write_text("changed\n")
    await page.get_by_role("link", name="Compare with").click()
    await expect(page.get_by_text("Both sessions work in the same folder")).to_be_visible()
    await expect(page.get_by_role("region", name="Changes of readme")).to_have_count(2)
    await screen.shot("compare-forks")
    await screen.check_access()

    # One that has a worktree of its own begins with the same files, and has its own changes.
    await screen.load(session)
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("menuitem", name="Branch off in a worktree").click()
    await expect(dialog).to_contain_text("the one change not committed yet")
    await screen.shot("fork-dialog")
    await screen.check_access()
    await dialog.get_by_role("button", name="Fork").click()
    await page.wait_for_url(lambda url: url.rpartition("/s/")[2] not in ("", session))
    own = page.url.rpartition("/")[2]
    await seat.state(own, "idle")
    tree = Path((await seat.ada.get(f"sessions/{own}"))["directory"])
    assert tree != project
    assert (tree / "readme").read_text() == "changed\n"
    (tree / "only").write_text("only there\n")
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("menuitem", name="Compare with").click()
    await page.get_by_role("checkbox", checked=False).last.check()
    await expect(page.get_by_role("article")).to_have_count(2)
    await screen.shot("compare-chosen")
    await screen.check_access()
    await page.get_by_role("link", name="Compare their changes").click()
    files = page.get_by_role("navigation", name="Changed files")
    await expect(files.get_by_role("button")).to_have_text(
        [re.compile("^onlyonly in "), re.compile("^readme")]
    )
    await expect(page.get_by_text("Both sessions work in the same folder")).to_have_count(0)
    for each in (session, fork, own):
        await seat.stop(each)
