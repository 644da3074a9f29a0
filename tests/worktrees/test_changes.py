"""The diff of a working folder: everything that is different is in it, and nothing is disturbed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.protocol.machine_requests import Changes, SeeChanges
from quarterdeck.worktrees.changes import see_changes
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees
from support.repositories import commit, git, make_repository

pytestmark = pytest.mark.process
NO_STARTS = Starts(Path("/nowhere"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


@pytest.fixture
def worktrees(tmp_path: Path) -> Worktrees:
    return Worktrees(tmp_path / "home" / "worktrees", 30.0)


def shown(changes: Changes) -> dict[str, tuple[str, int | None, int | None]]:
    return {file.path: (file.status, file.added, file.removed) for file in changes.files}


def state(tree: Path) -> tuple[bytes, str]:
    """The index, byte for byte, and what git makes of the folder."""
    index = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-path", "index"))
    return index.read_bytes(), git(tree, "status", "--porcelain")


async def test_commits_changes_and_new_files_are_in_the_diff_and_ignored_ones_are_not(
    repository: Path, worktrees: Worktrees
) -> None:
    """TREE-6"""
    base = git(repository, "rev-parse", "HEAD")
    tree = await worktrees.open(str(repository), "task")
    (tree / "made").write_text("a\nb\n")
    commit(tree, "work")
    (tree / "readme").write_text("one\n2\nthree\n")
    (tree / "new ünd\t«odd»").write_text("x\n")
    (tree / "noise.log").write_text("ignored\n")
    (tree / "picture").write_bytes(b"\0\1\2")
    git(tree, "mv", "inner/file", "inner/moved")
    before = state(tree)

    found = await see_changes(
        SeeChanges(directory=str(repository), branch="task"), worktrees, NO_STARTS
    )

    assert shown(found) == {
        "made": ("added", 2, 0),
        "readme": ("modified", 1, 1),
        "new ünd\t«odd»": ("added", 1, 0),
        "picture": ("added", None, None),
        "inner/moved": ("renamed", 0, 0),
    }
    renamed = next(file for file in found.files if file.status == "renamed")
    assert renamed.old_path == "inner/file"
    assert (found.base, found.branch, found.into) == (base, "task", "main")
    assert (found.commits, found.uncommitted, found.added, found.removed) == (1, 4, 4, 1)
    assert "-two\n+2\n" in found.text
    assert not found.text_cut
    assert state(tree) == before


async def test_what_the_base_got_meanwhile_is_not_the_agents_change(
    repository: Path, worktrees: Worktrees
) -> None:
    """TREE-6"""
    tree = await worktrees.open(str(repository), "task")
    (tree / "made").write_text("a\n")
    (repository / "other").write_text("of somebody else\n")
    commit(repository, "meanwhile")
    wanted = SeeChanges(directory=str(repository), branch="task")
    assert [*shown(await see_changes(wanted, worktrees, NO_STARTS))] == ["made"]
    commit(tree, "work")
    git(tree, "merge", "-q", "main")
    assert [*shown(await see_changes(wanted, worktrees, NO_STARTS))] == ["made"]


async def test_a_branch_whose_worktree_is_gone_still_has_its_diff(
    repository: Path, worktrees: Worktrees
) -> None:
    """TREE-6"""
    tree = await worktrees.open(str(repository), "task")
    (tree / "made").write_text("a\n")
    commit(tree, "work")
    git(repository, "worktree", "remove", str(tree))
    wanted = SeeChanges(directory=str(repository), branch="task")
    found = await see_changes(wanted, worktrees, NO_STARTS)
    assert (shown(found), found.uncommitted) == ({"made": ("added", 1, 0)}, 0)
    git(repository, "branch", "-q", "-D", "task")
    with pytest.raises(LaunchError, match="there is no branch 'task'"):
        await see_changes(wanted, worktrees, NO_STARTS)


async def test_without_a_branch_the_folder_is_compared_to_its_last_commit(
    tmp_path: Path, repository: Path, worktrees: Worktrees
) -> None:
    """TREE-6"""
    (repository / "inner" / "file").write_text("changed\n")
    (repository / "new").write_text("new\n")
    found = await see_changes(SeeChanges(directory=str(repository / "inner")), worktrees, NO_STARTS)
    assert [*shown(found)] == ["inner/file", "new"]
    assert (found.uncommitted, found.branch, found.into) == (2, None, None)
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "first").write_text("1\n")
    assert [*shown(await see_changes(SeeChanges(directory=str(empty)), worktrees, NO_STARTS))] == [
        "first"
    ]
    with pytest.raises(LaunchError, match="not a git repository"):
        await see_changes(SeeChanges(directory=str(tmp_path)), worktrees, NO_STARTS)


async def test_a_long_diff_is_cut_and_says_so(repository: Path, worktrees: Worktrees) -> None:
    """TREE-6"""
    (repository / "long").write_text("word\n" * 500_000)
    found = await see_changes(
        SeeChanges(directory=str(repository), text_limit=100_000), worktrees, NO_STARTS
    )
    assert (found.text_cut, len(found.text), found.added) == (True, 100_000, 500_000)


async def test_nothing_that_the_repository_configures_is_run(
    tmp_path: Path, repository: Path, worktrees: Worktrees
) -> None:
    """TREE-8"""
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    program.chmod(0o755)
    for name in (
        "core.fsmonitor", "core.pager", "diff.external", "diff.x.command", "diff.x.textconv",
        "filter.x.clean", "filter.x.smudge", "filter.y.process", "core.sshCommand", "gpg.program",
    ):  # fmt: skip
        git(repository, "config", name, str(program))
    git(repository, "config", "filter.x.required", "true")
    hooks = repository / ".git" / "hooks"
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        (hooks / hook).write_text(program.read_text())
        (hooks / hook).chmod(0o755)
    (repository / ".git/info/attributes").write_text("readme diff=x filter=x\nnew filter=y\n")
    (repository / "readme").write_text("changed\n")
    (repository / "new").write_text("new\n")
    found = await see_changes(SeeChanges(directory=str(repository)), worktrees, NO_STARTS)
    assert [*shown(found)] == ["new", "readme"]
    assert "+changed\n" in found.text
    assert not trap.exists()


async def test_what_changed_in_the_second_in_which_git_last_looked_is_seen(
    repository: Path, worktrees: Worktrees
) -> None:
    git(repository, "config", "core.trustctime", "false")  # a test cannot set that one back
    readme, index = repository / "readme", repository / ".git" / "index"
    then = (1_750_000_000, 1_750_000_000)
    os.utime(readme, then)
    git(repository, "update-index", "--refresh")
    readme.write_text(readme.read_text().swapcase())
    for file in (readme, index):
        os.utime(file, then)
    found = await see_changes(SeeChanges(directory=str(repository)), worktrees, NO_STARTS)
    assert [file.path for file in found.files] == ["readme"]
