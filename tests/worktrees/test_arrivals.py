"""The folder of a session that comes from another machine: its branch, and no other work."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.protocol.machine_requests import OpenPlace
from quarterdeck.worktrees.arrivals import open_place
from quarterdeck.worktrees.worktrees import Worktrees
from support.repositories import commit, git, make_repository

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Place:
    """A repository that two machines can reach, `theirs` of the first and `mine` of this one."""

    def __init__(self, folder: Path) -> None:
        seed = make_repository(folder / "seed")
        self.origin = folder / "origin.git"
        git(folder, "clone", "-q", "--bare", str(seed), str(self.origin))
        self.theirs, self.mine = folder / "theirs", folder / "mine"
        for clone in (self.theirs, self.mine):
            git(folder, "clone", "-q", str(self.origin), str(clone))
            git(clone, "config", "user.email", "a@example.org")
            git(clone, "config", "user.name", "A")
        self.worktrees = Worktrees(folder / "worktrees", 60.0)

    def work(self, clone: Path, text: str, *, push: bool = True) -> str:
        """A commit on the branch."""
        if git(clone, "branch", "--show-current") != "fix":
            git(clone, "checkout", "-q", "-B", "fix")
        (clone / "readme").write_text(text)
        made = commit(clone, text)
        if push:
            git(clone, "push", "-q", "origin", "fix")
        return made

    async def open(self) -> tuple[Path, str]:
        wanted = OpenPlace(directory=str(self.mine), branch="fix")
        opened = await open_place(wanted, self.worktrees)
        return Path(opened.directory), opened.text


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


async def test_without_a_branch_it_is_the_folder_itself(place: Place) -> None:
    opened = await open_place(OpenPlace(directory="/any"), place.worktrees)
    assert (opened.directory, opened.text) == ("/any", "")


async def test_a_branch_of_the_remote_is_fetched_and_moves_on_with_it(place: Place) -> None:
    first = place.work(place.theirs, "one")
    tree, text = await place.open()
    assert (head(tree), text) == (first, "")
    assert git(tree, "branch", "--show-current") == "fix"
    assert git(tree, "status", "--porcelain") == ""
    # The worktree is there already, and is behind; other work in it is kept.
    (tree / "notes").write_text("mine\n")
    second = place.work(place.theirs, "two")
    again, text = await place.open()
    assert (again, head(tree), text) == (tree, second, "")
    assert (tree / "notes").read_text() == "mine\n"
    # A change in the way is kept, and it is told that the branch is older than the remote's.
    (tree / "readme").write_text("not committed\n")
    place.work(place.theirs, "three")
    _, text = await place.open()
    assert "remote is ahead" in text
    assert head(tree) == second
    assert (tree / "readme").read_text() == "not committed\n"
    # Nothing of all that is in the repository's own folder.
    assert git(place.mine, "branch", "--show-current") == "main"


async def test_a_branch_that_is_behind_and_not_checked_out_moves_forward(place: Place) -> None:
    place.work(place.theirs, "one")
    git(place.mine, "fetch", "-q")
    git(place.mine, "branch", "-q", "fix", "origin/fix")
    second = place.work(place.theirs, "two")
    tree, text = await place.open()
    assert (head(tree), text) == (second, "")


async def test_a_branch_with_commits_of_this_machine_stays_as_it_is(place: Place) -> None:
    place.work(place.theirs, "one")
    git(place.mine, "fetch", "-q")
    git(place.mine, "checkout", "-q", "fix")
    mine = place.work(place.mine, "ahead", push=False)
    git(place.mine, "checkout", "-q", "main")
    tree, text = await place.open()
    assert (head(tree), text) == (mine, ""), "the remote has nothing that is not here"
    place.work(place.theirs, "otherwise")
    tree, text = await place.open()
    assert head(tree) == mine
    assert "other commits" in text


async def test_a_branch_that_nobody_has_is_not_made_anew(place: Place) -> None:
    with pytest.raises(Conflict, match="not on this machine") as caught:
        await place.open()
    assert caught.value.code == "branch_not_here"
    assert "origin.git" in str(caught.value)
    assert git(place.mine, "branch", "--format=%(refname:short)") == "main"
    git(place.mine, "remote", "remove", "origin")
    with pytest.raises(Conflict, match="the repository has no remote"):
        await place.open()
    with pytest.raises(LaunchError, match="not a valid branch name"):
        await open_place(OpenPlace(directory=str(place.mine), branch="--x"), place.worktrees)


async def test_a_remote_that_is_away_leaves_the_branch_of_this_machine(place: Place) -> None:
    mine = place.work(place.mine, "here", push=False)
    git(place.mine, "checkout", "-q", "main")
    git(place.mine, "config", "remote.origin.url", "../gone.git")
    tree, text = await place.open()
    assert head(tree) == mine
    assert "as this machine has it" in text


async def test_settings_that_an_agent_can_write_start_no_program(place: Place) -> None:
    mark = place.mine.parent / "mark"
    program = place.mine.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    place.work(place.theirs, "one")
    for name, value in {
        "core.sshCommand": str(program),
        "protocol.ext.allow": "always",
        "core.fsmonitor": str(program),
        "remote.origin.uploadpack": str(program),
        f"url.ext::{program}.insteadOf": str(place.origin),
    }.items():
        git(place.mine, "config", name, value)
    tree, text = await place.open()
    assert (text, mark.exists()) == ("", False)
    assert (tree / "readme").read_text() == "one"
    git(place.mine, "config", "remote.origin.url", f"ext::{program}")
    _, text = await place.open()
    assert "names a program" in text
    assert not mark.exists()
