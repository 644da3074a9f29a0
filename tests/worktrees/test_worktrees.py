"""Git worktrees for runs: made one at a time, found again, and never outside of what was asked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.testing import fake
from quarterdeck.worktrees.worktrees import Worktrees
from support.processes import offspring
from support.runners import running, spec_of
from support.scripted_hub import scripted_hub

pytestmark = pytest.mark.process


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repository = tmp_path / "project"
    (repository / "inner").mkdir(parents=True)
    (repository / "inner" / "file").write_text("text\n")
    git(repository, "init", "-q", "-b", "main")
    git(repository, "config", "user.email", "a@example.org")
    git(repository, "config", "user.name", "A")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "first")
    return repository


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def worktrees(tmp_path: Path, seconds: float = 30.0) -> Worktrees:
    return Worktrees(tmp_path / "home" / "worktrees", seconds)


async def test_a_new_branch_gets_a_worktree_outside_of_the_repository(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-1"""
    tree = await worktrees(tmp_path).open(str(repository), "feature/one")
    assert git(tree, "branch", "--show-current") == "feature/one"
    assert (tree / "inner/file").read_text() == "text\n"
    assert tree.is_relative_to(tmp_path / "home/worktrees")
    assert git(repository, "status", "--porcelain") == ""


async def test_a_folder_inside_the_repository_is_the_same_one_in_the_worktree(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-1"""
    tree = await worktrees(tmp_path).open(str(repository / "inner"), "one")
    assert tree.name == "inner"
    (repository / "untracked").mkdir()
    there = await worktrees(tmp_path).open(str(repository / "untracked"), "one")
    assert there == tree.parent


async def test_an_existing_branch_and_an_existing_worktree_are_used_again(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-2"""
    git(repository, "branch", "old")
    first = await worktrees(tmp_path).open(str(repository), "old")
    (first / "work").write_text("not committed\n")
    assert await worktrees(tmp_path).open(str(repository), "old") == first
    assert (first / "work").exists()
    elsewhere = tmp_path / "by-hand"
    git(repository, "worktree", "add", "-q", "-b", "hand", str(elsewhere))
    assert await worktrees(tmp_path).open(str(repository), "hand") == elsewhere
    # From within a worktree, too.
    assert await worktrees(tmp_path).open(str(elsewhere), "old") == first


async def test_a_worktree_whose_folder_is_gone_is_made_again(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-2"""
    first = await worktrees(tmp_path).open(str(repository), "one")
    shutil.rmtree(first)
    assert await worktrees(tmp_path).open(str(repository), "one") == first
    assert (first / "inner/file").exists()


async def test_branches_whose_names_look_alike_do_not_meet(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-1"""
    names = ("a/b", "a-b", "a.b", "x" * 150 + "1", "x" * 150 + "2", "ä")
    trees = [await worktrees(tmp_path).open(str(repository), name) for name in names]
    assert len(set(trees)) == len(names)


async def test_many_worktrees_of_one_repository_at_once(tmp_path: Path, repository: Path) -> None:
    """TREE-3: git itself fails here now and then when it is not one at a time."""
    place = worktrees(tmp_path)
    found: dict[str, Path] = {}

    async def make(branch: str) -> None:
        tree = await place.open(str(repository), branch)
        assert found.setdefault(branch, tree) == tree

    async with anyio.create_task_group() as group:
        for number in range(6):
            for _ in range(2):
                group.start_soon(make, f"branch-{number}")
    assert len(set(found.values())) == 6
    assert len(git(repository, "worktree", "list").splitlines()) == 7


@pytest.mark.parametrize(
    "branch",
    ["", "-b", "--detach", "a b", "a..b", "/a", "a/", "a.lock", "HEAD", "@", "a\nb", "a\0b", "~x"],
)
async def test_what_cannot_be_a_branch_is_refused(
    tmp_path: Path, repository: Path, branch: str
) -> None:
    """TREE-4"""
    with pytest.raises(LaunchError, match="is not a valid branch name"):
        await worktrees(tmp_path).open(str(repository), branch)
    assert not (tmp_path / "home").exists()


async def test_the_branch_of_the_repository_itself_is_refused(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-4: the agent would work where the person works"""
    with pytest.raises(LaunchError, match="checked out in the repository itself"):
        await worktrees(tmp_path).open(str(repository), "main")


async def test_what_is_in_the_way_is_not_touched(tmp_path: Path, repository: Path) -> None:
    """TREE-4"""
    place = worktrees(tmp_path)
    tree = await place.open(str(repository), "one")
    git(repository, "worktree", "remove", str(tree))
    tree.mkdir()
    (tree / "precious").write_text("mine\n")
    with pytest.raises(LaunchError, match="does not know it as a worktree"):
        await place.open(str(repository), "one")
    assert (tree / "precious").read_text() == "mine\n"


async def test_a_git_that_hangs_is_given_up_with_all_that_it_started(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TREE-5"""
    settings = tmp_path / "gitconfig"
    settings.write_text('[filter "slow"]\n\tsmudge = sleep 60\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (repository / ".git/info/attributes").write_text("* filter=slow\n")
    before = offspring()
    with pytest.raises(LaunchError, match="did not end within 1 s"):
        await worktrees(tmp_path, seconds=1.0).open(str(repository), "one")
    assert offspring() <= before


async def test_a_repository_without_a_commit_says_so_in_gits_words(tmp_path: Path) -> None:
    """TREE-5"""
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "main")
    with pytest.raises(LaunchError, match="git worktree add"):
        await worktrees(tmp_path).open(str(empty), "one")


async def test_runs_in_worktrees_of_one_repository_start_at_once(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-3"""
    spec = spec_of(tmp_path / "cli", [fake.Serve()])
    names = [f"run-{number}" for number in range(4)]
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        for name in names:
            in_tree = type(spec)(directory=str(repository), claude=spec.claude, worktree=name)
            await hub.start(name, in_tree)
        folders = [(await hub.started(name)).directory for name in names]
        for name, folder in zip(names, folders, strict=True):
            assert folder is not None
            assert git(Path(folder), "branch", "--show-current") == name


async def test_a_worktree_like_another_folder_has_its_files_committed_or_not(
    tmp_path: Path, repository: Path
) -> None:
    """TREE-1"""
    made = worktrees(tmp_path)
    first = await made.open(str(repository), "one")
    git(first, "config", "user.email", "a@example.org")
    (first / "inner/file").write_text("committed\n")
    git(first, "commit", "-qam", "second")
    (first / "inner/file").write_text("not committed\n")
    (first / "new").write_text("new\n")
    (first / ".gitignore").write_text("secret\n")
    (first / "secret").write_text("secret\n")
    second = await made.open(str(repository), "two", like=str(first / "inner"))
    assert (second / "inner/file").read_text() == "not committed\n"
    assert (second / "new").read_text() == "new\n"
    assert not (second / "secret").exists()
    assert git(second, "log", "-1", "--format=%s") == "second"
    assert git(second, "diff", "--name-only") == "inner/file"
    assert git(second, "diff", "--cached", "--name-only") == ""
    assert git(first, "status", "--porcelain") == "M inner/file\n?? .gitignore\n?? new"
    base = await made.base_of(str(repository), "two")
    assert base.branch == "main"
    # One that is there stays as it is.
    (second / "new").write_text("changed\n")
    assert await made.open(str(repository), "two", like=str(first)) == second
    assert (second / "new").read_text() == "changed\n"
