"""The end of a worktree: merged, kept or discarded, and never a line of work lost."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.protocol.machine_requests import Settled, SettleTree, TreeAction
from quarterdeck.worktrees.settle import settle
from quarterdeck.worktrees.worktrees import Worktrees
from support.repositories import commit, git, make_repository

pytestmark = pytest.mark.process

MERGE, KEEP, DISCARD = TreeAction.MERGE, TreeAction.KEEP, TreeAction.DISCARD


class Place:
    """A repository with a worktree on the branch `task`."""

    def __init__(self, repository: Path, worktrees: Worktrees) -> None:
        self.repository = repository
        self.worktrees = worktrees
        self.tree = Path()
        self.busy = False

    async def settle(
        self, action: TreeAction, *, into: str | None = None, message: str | None = None
    ) -> Settled:
        wanted = SettleTree(
            directory=str(self.repository), branch="task", action=action, into=into, message=message
        )
        return await settle(wanted, self.worktrees, lambda path, branch: self.busy)

    async def refused(
        self, action: TreeAction, *, into: str | None = None, message: str | None = None
    ) -> tuple[str, str]:
        """The code and the words of a refusal, after which everything is as it was."""
        before = self.state()
        with pytest.raises(Conflict) as refused:
            await self.settle(action, into=into, message=message)
        assert self.state() == before
        return refused.value.code, str(refused.value)

    def state(self) -> object:
        refs = git(self.repository, "for-each-ref")
        files = {
            path.relative_to(folder): path.read_bytes()
            for folder in (self.repository, self.tree)
            for path in folder.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }
        status = [git(folder, "status", "--porcelain") for folder in (self.repository, self.tree)]
        return refs, files, status

    def branches(self) -> list[str]:
        return git(self.repository, "for-each-ref", "--format=%(refname)").splitlines()


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    repository = make_repository(tmp_path / "project")
    made = Place(repository, Worktrees(tmp_path / "home" / "worktrees", 30.0))
    made.tree = await made.worktrees.open(str(repository), "task")
    return made


def work(tree: Path, name: str = "made", text: str = "work\n") -> str:
    (tree / name).write_text(text)
    return commit(tree, "work")


# --- merge ---


async def test_a_merge_brings_the_work_into_the_base_and_removes_the_worktree(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    (place.repository / "mine").write_text("not committed, and not in the way\n")
    done = await place.settle(MERGE)
    assert (done.into, done.commit, done.removed) == ("main", tip, True)
    assert git(place.repository, "rev-parse", "main") == tip
    assert (place.repository / "made").read_text() == "work\n"
    assert git(place.repository, "status", "--porcelain") == "?? mine"
    assert not place.tree.exists()
    assert place.branches() == ["refs/heads/main"]


async def test_a_base_that_went_on_gets_a_merge_commit(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    ours = work(place.repository, "other")
    done = await place.settle(MERGE)
    assert git(place.repository, "rev-parse", "main") == done.commit
    assert git(place.repository, "log", "-1", "--format=%P", "main").split() == [ours, tip]
    assert git(place.repository, "log", "-1", "--format=%s") == "Merge branch 'task' into main"
    assert git(place.repository, "status", "--porcelain") == ""


async def test_a_base_that_is_checked_out_nowhere_is_moved_too(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    git(place.repository, "switch", "-q", "-c", "elsewhere")
    done = await place.settle(MERGE)
    assert (done.into, git(place.repository, "rev-parse", "main")) == ("main", tip)
    assert not (place.repository / "made").exists()


async def test_conflicts_are_named_and_both_sides_stay_as_they_were(place: Place) -> None:
    """TREE-7"""
    work(place.tree, "readme", "theirs\n")
    work(place.repository, "readme", "ours\n")
    code, words = await place.refused(MERGE)
    assert code == "merge_conflict"
    assert words == "task and main both changed readme; nothing was merged"


async def test_what_is_not_committed_is_refused_or_committed_first(place: Place) -> None:
    """TREE-7"""
    (place.tree / "readme").write_text("changed\n")
    (place.tree / "made").write_text("new\n")
    code, words = await place.refused(MERGE)
    assert code == "uncommitted"
    assert "readme, made; commit them, or give a message" in words
    await place.settle(MERGE, message="What the agent did\n\nAll of it.")
    assert (place.repository / "readme").read_text() == "changed\n"
    assert (place.repository / "made").read_text() == "new\n"
    assert git(place.repository, "log", "-1", "--format=%s|%an") == "What the agent did|A"


async def test_a_merge_that_would_overwrite_what_somebody_has_not_committed_is_refused(
    place: Place,
) -> None:
    """TREE-7"""
    work(place.tree, "readme", "theirs\n")
    (place.repository / "readme").write_text("precious\n")
    code, words = await place.refused(MERGE)
    assert code == "base_in_use"
    assert "would be overwritten by merge" in words
    git(place.repository, "checkout", "readme")
    work(place.tree, "made")
    (place.repository / "made").write_text("untracked and precious\n")
    assert (await place.refused(MERGE))[0] == "base_in_use"


async def test_a_worktree_that_an_agent_works_in_is_merged_and_stays(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    place.busy = True
    done = await place.settle(MERGE)
    assert (done.commit, done.removed) == (tip, False)
    assert place.tree.exists()
    again = await place.settle(MERGE)
    assert again.text == "main already has all of task. Its worktree stays."


async def test_another_branch_can_be_merged_into(place: Place) -> None:
    """TREE-7"""
    git(place.repository, "branch", "release")
    tip = work(place.tree)
    assert (await place.refused(MERGE, into="nowhere"))[0] == "no_base"
    assert (await place.refused(MERGE, into="task"))[0] == "no_base"
    with pytest.raises(LaunchError, match="is not a valid branch name"):
        await place.settle(MERGE, into="--force")
    done = await place.settle(MERGE, into="release")
    assert (done.into, git(place.repository, "rev-parse", "release")) == ("release", tip)


async def test_the_base_is_the_branch_that_was_checked_out_when_it_was_made(
    tmp_path: Path, place: Place
) -> None:
    """TREE-7"""
    git(place.repository, "switch", "-q", "-c", "other")
    work(place.repository, "on-other")
    tip = work(place.tree)
    assert (await place.settle(MERGE)).into == "main"
    assert git(place.repository, "rev-parse", "main") == tip
    git(place.repository, "checkout", "-q", "--detach")
    place.tree = await place.worktrees.open(str(place.repository), "task")
    work(place.tree)
    assert (await place.refused(MERGE))[0] == "no_base"


async def test_a_worktree_on_another_branch_than_its_own_is_not_merged(place: Place) -> None:
    """TREE-7"""
    git(place.tree, "switch", "-q", "-c", "strayed")
    code, words = await place.refused(MERGE)
    assert code == "moved"
    assert "refs/heads/strayed" in words


async def test_a_merge_driver_of_the_repository_is_not_run(place: Place, tmp_path: Path) -> None:
    """TREE-8"""
    trap = tmp_path / "trap"
    git(place.repository, "config", "merge.x.driver", f"touch {trap}")
    (place.repository / ".git/info/attributes").write_text("readme merge=x\n")
    work(place.tree, "readme", "one\ntwo\nTHREE\n")
    work(place.repository, "readme", "ONE\ntwo\nthree\n")
    assert (await place.refused(MERGE))[0] == "merge_conflict"
    assert not trap.exists()


# --- keep ---


async def test_what_is_kept_stays_as_it_is(place: Place) -> None:
    """TREE-7"""
    (place.tree / "made").write_text("not committed\n")
    before = place.state()
    done = await place.settle(KEEP)
    assert str(place.tree) in done.text
    assert place.state() == before


async def test_what_is_not_there_cannot_be_settled(place: Place) -> None:
    """TREE-7"""
    git(place.repository, "worktree", "remove", str(place.tree))
    git(place.repository, "branch", "-q", "-D", "task")
    for action in TreeAction:
        with pytest.raises(Conflict, match="there is no branch 'task'"):
            await place.settle(action)


# --- discard ---


def saved_files(place: Place, ref: str) -> list[str]:
    return git(place.repository, "ls-tree", "-r", "--name-only", ref).splitlines()


async def test_discarding_what_has_nothing_of_its_own_leaves_nothing(place: Place) -> None:
    """TREE-7"""
    done = await place.settle(DISCARD)
    assert (done.saved, done.removed) == (None, True)
    assert not place.tree.exists()
    assert place.branches() == ["refs/heads/main"]


async def test_discarded_work_is_saved_first_committed_or_not(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    (place.tree / "readme").write_text("changed\n")
    (place.tree / "staged").write_text("staged\n")
    git(place.tree, "add", "staged")
    (place.tree / "staged").write_text("and changed again\n")
    (place.tree / "new").write_text("new\n")
    done = await place.settle(DISCARD)
    assert done.saved is not None
    assert done.saved in done.text
    assert not place.tree.exists()
    assert place.branches() == ["refs/heads/main", done.saved]
    assert git(place.repository, "log", "-1", "--format=%P", done.saved) == tip
    assert {"made", "new", "staged"} <= set(saved_files(place, done.saved))
    assert git(place.repository, "show", f"{done.saved}:staged") == "and changed again"
    # As the words say:
    git(place.repository, "branch", "task", done.saved)
    again = await place.worktrees.open(str(place.repository), "task")
    assert (again / "readme").read_text() == "changed\n"


async def test_commits_on_no_branch_are_saved_together_with_the_branch(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    git(place.tree, "checkout", "-q", "--detach", "main")
    stray = work(place.tree, "stray")
    done = await place.settle(DISCARD)
    assert done.saved is not None
    reached = git(place.repository, "rev-list", done.saved).splitlines()
    assert {tip, stray} <= set(reached)


async def test_what_a_merge_left_with_conflicts_is_saved_as_it_is(place: Place) -> None:
    """TREE-7"""
    work(place.tree, "readme", "theirs\n")
    work(place.repository, "readme", "ours\n")
    with pytest.raises(Exception, match="returned non-zero"):
        git(place.tree, "merge", "-q", "main")
    assert (await place.refused(MERGE, message="all of it"))[0] == "unmerged"
    done = await place.settle(DISCARD)
    assert done.saved is not None
    assert "<<<<<<<" in git(place.repository, "show", f"{done.saved}:readme")


async def test_work_that_another_branch_has_is_not_saved_again(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    git(place.repository, "branch", "copy", tip)
    assert (await place.settle(DISCARD)).saved is None


async def test_a_branch_without_its_worktree_is_saved_and_discarded_too(place: Place) -> None:
    """TREE-7"""
    tip = work(place.tree)
    git(place.repository, "worktree", "remove", str(place.tree))
    done = await place.settle(DISCARD)
    assert done.saved is not None
    assert git(place.repository, "rev-parse", done.saved) == tip


async def test_a_worktree_in_use_or_of_somebody_else_is_not_discarded(
    place: Place, tmp_path: Path
) -> None:
    """TREE-7"""
    place.busy = True
    assert (await place.refused(DISCARD))[0] == "running"
    place.busy = False
    by_hand = tmp_path / "by-hand"
    git(place.repository, "worktree", "move", str(place.tree), str(by_hand))
    place.tree = by_hand
    assert (await place.refused(DISCARD))[0] == "not_ours"
    work(by_hand)
    assert (await place.settle(MERGE)).removed is False


async def test_a_repository_inside_of_it_is_not_thrown_away(place: Place) -> None:
    """TREE-7"""
    make_repository(place.tree / "cloned")
    assert (await place.refused(DISCARD))[0] == "nested_repository"
    assert (await place.refused(MERGE, message="all of it"))[0] == "nested_repository"


async def test_a_submodule_with_something_in_it_is_not_thrown_away(
    place: Place, tmp_path: Path
) -> None:
    """TREE-7"""
    part = make_repository(tmp_path / "part")
    git(place.tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "part")
    commit(place.tree, "a part")
    (place.tree / "part" / "readme").write_text("changed in the part\n")
    with pytest.raises(Conflict, match="submodule part is checked out"):
        await place.settle(DISCARD)
    assert (place.tree / "part" / "readme").read_text() == "changed in the part\n"


async def test_nobody_needs_a_name_in_git_for_their_work_to_be_saved(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TREE-7"""
    git(place.repository, "config", "--unset", "user.name")
    git(place.repository, "config", "--unset", "user.email")
    git(place.repository, "config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    (place.tree / "made").write_text("work\n")
    done = await place.settle(DISCARD)
    assert done.saved is not None
    assert git(place.repository, "log", "-1", "--format=%cn", done.saved) == "Quarterdeck"


async def test_one_repository_is_settled_one_at_a_time(place: Place) -> None:
    """TREE-3"""
    for number in range(4):
        work(await place.worktrees.open(str(place.repository), f"task-{number}"), f"made-{number}")

    async def merge(branch: str) -> None:
        wanted = SettleTree(directory=str(place.repository), branch=branch, action=MERGE)
        await settle(wanted, place.worktrees, lambda path, branch: False)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(merge, f"task-{number}")
    assert all((place.repository / f"made-{number}").exists() for number in range(4))
    assert git(place.repository, "status", "--porcelain") == ""
