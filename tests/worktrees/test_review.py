"""Reviewing changes: compared to a session's start, file by file, undone, committed, pushed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.protocol.machine_requests import (
    Against,
    BlockId,
    Changes,
    CommitFiles,
    FileDiff,
    OpenPullRequest,
    PushBranch,
    RevertChange,
    SeeChanges,
    SeeFileChange,
    SeeRemote,
    SettleTree,
    StageFiles,
    TreeAction,
)
from quarterdeck.worktrees import file_diff, starts
from quarterdeck.worktrees.changes import see_changes
from quarterdeck.worktrees.commits import commit as make_commit
from quarterdeck.worktrees.commits import stage
from quarterdeck.worktrees.file_diff import see_file_change
from quarterdeck.worktrees.publish import open_pull_request, push, see_remote
from quarterdeck.worktrees.revert import chosen_blocks, revert
from quarterdeck.worktrees.settle import settle
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees
from support.repositories import commit, git, make_repository

pytestmark = [pytest.mark.process, pytest.mark.anyio]

SESSION = "../a session/with odd letters"


class Place:
    """A repository, and what a runner has for it."""

    def __init__(self, folder: Path) -> None:
        self.repository = make_repository(folder / "pro:ject")
        self.worktrees = Worktrees(folder / "ho:me" / "worktrees", 30.0)
        self.starts = Starts(folder / "ho:me" / "starts")
        self.directory = str(self.repository)

    async def begin(self) -> None:
        await self.starts.keep(self.worktrees.git, SESSION, self.directory)

    async def changes(self, against: Against = Against.SESSION, **more: object) -> Changes:
        wanted = SeeChanges(directory=self.directory, session=SESSION, against=against, **more)  # type: ignore[arg-type]
        return await see_changes(wanted, self.worktrees, self.starts)

    async def diff(self, path: str, **more: object) -> FileDiff:
        wanted = SeeFileChange(directory=self.directory, session=SESSION, path=path, **more)  # type: ignore[arg-type]
        return await see_file_change(wanted, self.worktrees, self.starts)

    async def undo(self, path: str, **more: object) -> str | None:
        wanted = RevertChange(directory=self.directory, session=SESSION, path=path, **more)  # type: ignore[arg-type]
        return (await revert(wanted, self.worktrees, self.starts)).saved


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def shown(changes: Changes) -> dict[str, str]:
    return {file.path: file.status for file in changes.files}


# --- the start of a session ---


async def test_a_session_is_compared_to_its_start_and_not_to_what_was_there_before(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "LARGEST_NEW", 20)
    (place.repository / "readme").write_text("one\nmine\nthree\n")
    (place.repository / "mine").write_text("of a person\n")
    (place.repository / "large").write_text("x" * 30)
    before = (git(place.repository, "status", "--porcelain"), list_objects(place.repository))
    await place.begin()
    assert (
        git(place.repository, "status", "--porcelain"),
        list_objects(place.repository),
    ) == before
    assert shown(await place.changes()) == {}
    (place.repository / "made").write_text("by a shell command\n")
    (place.repository / "mine").write_text("of a person\nand the agent\n")
    git(place.repository, "mv", "inner/file", "inner/moved")
    commit(place.repository, "of the agent")
    found = await place.changes()
    assert shown(found) == {"made": "added", "mine": "modified", "inner/moved": "renamed"} | (
        {"large": "added"}
    )
    assert (found.since, found.uncommitted) == ("start", 0)
    assert shown(await place.changes(Against.HEAD)) == {}
    # A second start of the same session changes nothing.
    await place.begin()
    assert len((await place.changes()).files) == 4


def list_objects(repository: Path) -> set[str]:
    return {path.name for path in (repository / ".git" / "objects").rglob("*") if path.is_file()}


async def test_without_a_whole_snapshot_a_folder_is_compared_to_its_last_commit(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    await place.starts.keep(place.worktrees.git, "other", str(tmp_path / "plain"))
    assert (await place.changes()).since == "head"
    await place.begin()
    (place.repository / "readme").write_text("other\n")
    assert (await place.changes()).since == "start"
    (kept,) = (tmp_path / "ho:me" / "starts").iterdir()
    record = kept / "start.json"
    good = record.read_bytes()
    for bad in (b"{", good.replace(b'"tree":"', b'"tree":"0000'), good.replace(b"pro:", b"no:")):
        record.write_bytes(bad)
        assert (await place.changes()).since == "head"


async def test_a_snapshot_that_fails_is_left_out_and_old_ones_are_removed(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.repository / ".git" / "index").write_bytes(b"broken")
    await place.begin()
    folder = tmp_path / "ho:me" / "starts"
    assert list(folder.iterdir()) == []
    place.starts.prune()
    monkeypatch.setattr(starts, "MOST_KEPT", 1)
    for number, age in enumerate((0, 10, 100 * 86400)):
        (folder / str(number)).mkdir()
        os.utime(folder / str(number), (time.time() - age,) * 2)
    place.starts.prune()
    assert [path.name for path in folder.iterdir()] == ["0"]
    Starts(tmp_path / "nowhere").prune()


# --- one file ---


async def test_the_diff_of_one_file_has_all_its_lines_unless_it_is_too_long(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"line {number}\n" for number in range(100)]
    (place.repository / "long").write_text("".join(lines))
    commit(place.repository, "more")
    await place.begin()
    lines[50] = "another\n"
    (place.repository / "long").write_text("".join(lines))
    (place.repository / "ne\tw").write_text("x\n")
    (place.repository / "picture").write_bytes(b"\0\1")
    git(place.repository, "mv", "readme", "read you")
    found = await place.diff("long")
    assert found.whole
    assert not found.cut
    assert " line 0\n" in found.patch
    assert "-line 50\n+another\n" in found.patch
    assert "+x\n" in (await place.diff("ne\tw")).patch
    assert (await place.diff("picture")).binary
    renamed = await place.diff("read you", old_path="readme")
    assert "rename from readme" in renamed.patch
    monkeypatch.setattr(file_diff, "WHOLE", 300)
    short = await place.diff("long")
    assert (short.whole, short.cut, " line 0\n" in short.patch) == (False, False, False)
    monkeypatch.setattr(file_diff, "LONGEST", 10)
    assert (await place.diff("long")).cut
    assert not (await place.diff("readme")).binary
    for bad in ("", "/etc/passwd", "../x", "a/../../x", ".git/config", "inner/", "a\0b", ".GIT/x"):
        with pytest.raises(Conflict, match="is no path") as refused:
            await place.diff(bad)
        assert refused.value.code == "bad_path"


async def test_contents_that_the_policy_closes_are_left_out_of_the_text(place: Place) -> None:
    (place.repository / ".env").write_text("SECRET=1\n")
    (place.repository / "open").write_text("open\n")
    found = await place.changes(closed=(".env",))
    assert shown(found) == {".env": "added", "open": "added"}
    assert "+open\n" in found.text
    assert "SECRET" not in found.text
    assert (await place.changes(text_limit=0)).text_cut


async def test_no_program_of_the_repository_is_run_by_looking_at_it(
    place: Place, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    run = f"touch '{mark}'; cat"
    for key in (
        "core.fsmonitor", "diff.external", "filter.f.clean", "filter.f.smudge",
        "diff.d.textconv", "diff.d.command", "core.pager", "core.sshCommand", "gpg.program",
    ):  # fmt: skip
        git(place.repository, "config", key, run)
    git(place.repository, "config", "commit.gpgSign", "true")
    git(place.repository, "config", "diff.noprefix", "true")
    (place.repository / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "pre-push"):
        script = place.repository / ".git" / "hooks" / hook
        script.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        script.chmod(0o755)
    (place.repository / ".gitattributes").write_text("* filter=f diff=d\n")
    await place.begin()
    (place.repository / "readme").write_text("one\n2\nthree\n")
    (place.repository / "new").write_text("x\n")
    assert set(shown(await place.changes())) == {"readme", "new"}
    assert "+++ b/readme" in (await place.diff("readme")).patch
    await place.undo("readme")
    (place.repository / "readme").write_text("one\n2\n")
    await stage(StageFiles(directory=place.directory, paths=("readme",)), place.worktrees)
    wanted = CommitFiles(directory=place.directory, message="Work", all_files=True)
    await make_commit(wanted, place.worktrees)
    await see_remote(SeeRemote(directory=place.directory), place.worktrees)
    assert not mark.exists()


# --- undo ---


async def test_a_file_is_undone_whole_and_what_was_there_is_kept(place: Place) -> None:
    await place.begin()
    readme, gone = place.repository / "readme", place.repository / "inner" / "file"
    readme.write_text("other\n")
    (place.repository / "new").write_text("new\n")
    (place.repository / "picture").write_bytes(b"\0\1")
    gone.unlink()
    saved = await place.undo("readme", digest=(await place.diff("readme")).digest)
    assert readme.read_text() == "one\ntwo\nthree\n"
    assert git(place.repository, "show", f"{saved}:readme") == "other"
    assert await place.undo("new") is not None
    assert await place.undo("picture") is not None
    assert await place.undo("inner/file") is None
    assert gone.read_text() == "text\n"
    assert git(place.repository, "status", "--porcelain") == ""
    git(place.repository, "mv", "readme", "renamed")
    await place.undo("renamed", old_path="readme")
    assert readme.exists()
    assert not (place.repository / "renamed").exists()
    with pytest.raises(Conflict, match="is not changed"):
        await place.undo("readme")


async def test_blocks_are_undone_and_others_stay(place: Place) -> None:
    path = place.repository / "numbers"
    path.write_text("".join(f"{number}\n" for number in range(1, 31)))
    commit(place.repository, "numbers")
    await place.begin()
    lines = path.read_text().splitlines()
    lines[2] = "three"
    lines[9:9] = ["between", "both"]
    del lines[24]
    path.write_text("\n".join(lines) + "\n")
    digest = (await place.diff("numbers")).digest
    inserted = BlockId(old_start=9, old_lines=0, new_start=10, new_lines=2)
    await place.undo("numbers", blocks=(inserted,), digest=digest)
    left = path.read_text().splitlines()
    assert "between" not in left
    assert left[2] == "three"
    assert "23" not in left
    with pytest.raises(Conflict, match="changed since") as refused:
        await place.undo("numbers", blocks=(inserted,), digest=digest)
    assert refused.value.code == "changed_meanwhile"
    with pytest.raises(Conflict, match="there is no change at line 10"):
        await place.undo("numbers", blocks=(inserted,))
    with pytest.raises(Conflict, match="at most"):
        await place.undo("numbers", blocks=(inserted,) * 2001)
    (place.repository / "new").write_text("x\n")
    one = BlockId(old_start=0, old_lines=0, new_start=1, new_lines=1)
    with pytest.raises(Conflict, match="undo the whole file"):
        await place.undo("new", blocks=(one,))
    with pytest.raises(Conflict, match="no lines"):
        chosen_blocks(b"diff --git a/x b/x\n", (inserted,))


async def test_a_link_in_the_place_of_a_folder_is_not_followed_by_an_undo(
    place: Place, tmp_path: Path
) -> None:
    await place.begin()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("of somebody else\n")
    (place.repository / "inner" / "file").unlink()
    (place.repository / "inner").rmdir()
    (place.repository / "inner").symlink_to(outside)
    with pytest.raises((Conflict, LaunchError)):
        await place.undo("inner/file")
    assert (outside / "file").read_text() == "of somebody else\n"


# --- stage and commit ---


async def test_files_are_staged_taken_out_and_committed_as_a_person_chooses(place: Place) -> None:
    worktrees, directory = place.worktrees, place.directory
    (place.repository / "readme").write_text("other\n")
    (place.repository / "new").write_text("new\n")
    (place.repository / "inner" / "file").unlink()
    with pytest.raises(Conflict, match="nothing is staged"):
        await make_commit(CommitFiles(directory=directory, message="x"), worktrees)
    with pytest.raises(Conflict, match="needs a message"):
        await make_commit(CommitFiles(directory=directory, message=" \n"), worktrees)
    await stage(StageFiles(directory=directory, paths=("readme", "inner/file")), worktrees)
    (place.repository / "readme").write_text("other\nand more\n")
    states = {file.path: file.staged for file in (await place.changes(Against.HEAD)).files}
    assert states == {"readme": "part", "inner/file": "all", "new": "none"}
    wanted = StageFiles(directory=directory, paths=("inner/file",), staged=False)
    assert (await stage(wanted, worktrees)).text == "Unstaged: inner/file."
    done = await make_commit(CommitFiles(directory=directory, message="Other\n\nWhy."), worktrees)
    assert git(place.repository, "log", "-1", "--format=%B") == "Other\n\nWhy."
    assert done.commit == git(place.repository, "rev-parse", "HEAD")
    assert done.paths == ("readme",)
    assert git(place.repository, "show", "HEAD:readme") == "other"
    everything = CommitFiles(directory=directory, message="All", all_files=True)
    await make_commit(everything, worktrees)
    assert git(place.repository, "status", "--porcelain") == ""
    (place.repository / "nested").mkdir()
    git(place.repository / "nested", "init", "-q")
    with pytest.raises(Conflict, match="repository of its own"):
        await make_commit(everything, worktrees)
    with pytest.raises(Conflict, match="1 to 2000"):
        await stage(StageFiles(directory=directory, paths=()), worktrees)
    gone = StageFiles(directory=directory, paths=("x",), branch="gone")
    with pytest.raises(Conflict, match="no worktree any more"):
        await stage(gone, worktrees)


async def test_a_repository_without_a_commit_can_be_committed_to(
    tmp_path: Path, place: Place
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "main")
    (empty / "a").write_text("a\n")
    directory, worktrees = str(empty), place.worktrees
    remote = await see_remote(SeeRemote(directory=directory), worktrees)
    assert (remote.branch, remote.problem) == ("main", "no_commit")
    with pytest.raises(Conflict, match="nothing is staged"):
        await make_commit(CommitFiles(directory=directory, message="x"), worktrees)
    await stage(StageFiles(directory=directory, paths=("a",)), worktrees)
    found = await see_changes(
        SeeChanges(directory=directory, against=Against.HEAD), worktrees, place.starts
    )
    assert [(file.path, file.staged) for file in found.files] == [("a", "all")]
    await stage(StageFiles(directory=directory, paths=("a",), staged=False), worktrees)
    done = await make_commit(
        CommitFiles(directory=directory, message="First", all_files=True), worktrees
    )
    assert done.text.endswith(": First")


async def test_unresolved_conflicts_are_not_committed(place: Place) -> None:
    git(place.repository, "checkout", "-q", "-b", "other")
    (place.repository / "readme").write_text("theirs\n")
    commit(place.repository, "theirs")
    git(place.repository, "checkout", "-q", "main")
    (place.repository / "readme").write_text("ours\n")
    commit(place.repository, "ours")
    with pytest.raises(Exception, match="merge"):
        git(place.repository, "merge", "-q", "other")
    wanted = CommitFiles(directory=place.directory, message="x", all_files=True)
    with pytest.raises(Conflict, match="unresolved"):
        await make_commit(wanted, place.worktrees)


# --- push and pull request ---


async def test_a_push_sends_what_was_seen_and_runs_nothing_of_the_repositories(
    place: Place, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    there = tmp_path / "there.git"
    git(tmp_path, "init", "-q", "--bare", str(there))
    for folder in (there, place.repository / ".git"):
        (folder / "hooks").mkdir(exist_ok=True)
        for hook in ("pre-push", "pre-receive", "update", "post-receive", "reference-transaction"):
            script = folder / "hooks" / hook
            script.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
            script.chmod(0o755)
    git(place.repository, "remote", "add", "origin", str(there))
    git(place.repository, "config", "remote.origin.receivepack", f"touch '{mark}';")
    git(place.repository, "config", "credential.helper", f"!touch '{mark}'")
    directory, worktrees = place.directory, place.worktrees
    seen = await see_remote(SeeRemote(directory=directory), worktrees)
    assert (seen.branch, seen.remote, seen.url) == ("main", "origin", str(there))
    assert (seen.commits, seen.known, seen.problem) == (("first",), False, "")
    assert seen.url is not None
    assert seen.commit is not None
    wanted = PushBranch(directory=directory, url=seen.url, commit=seen.commit)
    (place.repository / "readme").write_text("more\n")
    commit(place.repository, "more")
    mark.unlink()  # the commit of the test itself has run a hook
    with pytest.raises(Conflict, match="moved since"):
        await push(wanted, worktrees)
    commit_now = git(place.repository, "rev-parse", "HEAD")
    wanted = PushBranch(directory=directory, url=seen.url, commit=commit_now)
    done = await push(wanted, worktrees)
    assert git(there, "rev-parse", "refs/heads/main") == commit_now
    assert (done.commit, done.url) == (commit_now, str(there))
    after = await see_remote(SeeRemote(directory=directory), worktrees)
    assert (after.commits, after.known) == ((), True)
    git(place.repository, "config", "remote.origin.url", str(tmp_path / "elsewhere"))
    with pytest.raises(Conflict, match="is now"):
        await push(wanted, worktrees)
    git(place.repository, "config", "remote.origin.url", f"ext::sh -c touch% '{mark}'")
    assert "program" in (await see_remote(SeeRemote(directory=directory), worktrees)).problem
    with pytest.raises(Conflict, match="names a program"):
        await push(wanted, worktrees)
    assert not mark.exists()


async def test_a_push_that_the_remote_refuses_says_so_without_the_password(
    place: Place, tmp_path: Path
) -> None:
    url = "https://ada:secret@127.0.0.1:9/a/b.git"
    git(place.repository, "remote", "add", "up", url)
    seen = await see_remote(SeeRemote(directory=place.directory), place.worktrees)
    assert seen.url == "https://127.0.0.1:9/a/b.git"
    assert seen.commit is not None
    wanted = PushBranch(directory=place.directory, url=seen.url, commit=seen.commit)
    with pytest.raises(Conflict, match="failed") as refused:
        await push(wanted, place.worktrees)
    assert refused.value.code == "not_pushed"
    assert "secret" not in str(refused.value)
    git(place.repository, "checkout", "-q", "--detach")
    detached = await see_remote(SeeRemote(directory=place.directory), place.worktrees)
    assert detached.problem == "no_branch"
    with pytest.raises(Conflict, match="no branch"):
        await push(wanted, place.worktrees)
    git(place.repository, "checkout", "-q", "main")
    git(place.repository, "remote", "remove", "up")
    none = await see_remote(SeeRemote(directory=place.directory), place.worktrees)
    assert none.problem == "no_remote"


GH = """#!/usr/bin/env python3
import json, os, sys
body = json.load(sys.stdin)
open(os.environ["HOME"] + "/asked.json", "w").write(json.dumps(
    {"argv": sys.argv[1:], "body": body, "files": os.listdir(".")}))
if body["title"] == "no":
    print(json.dumps({"message": "Validation Failed"}))
    sys.exit(1)
print(json.dumps({"html_url": "https://github.com/a/b/pull/7", "web_url": "https://gitlab.com/m/1"}))
"""


async def test_a_pull_request_is_opened_by_the_tool_of_the_host_outside_of_the_folder(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, home = tmp_path / "programs", tmp_path / "person"
    programs.mkdir()
    home.mkdir()
    directory, worktrees = place.directory, place.worktrees
    git(place.repository, "checkout", "-q", "-b", "topic")
    git(place.repository, "remote", "add", "origin", "git@github.com:a/b.git")
    head = git(place.repository, "rev-parse", "HEAD")
    git(place.repository, "update-ref", "refs/remotes/origin/main", "main")
    git(place.repository, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    wanted = OpenPullRequest(
        directory=directory, url="git@github.com:a/b.git", title='$(touch x) "it\'s"', base="main"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(Conflict, match="need `gh`"):
        await open_pull_request(wanted, worktrees)
    for tool in ("gh", "glab"):
        (programs / tool).write_text(GH)
        (programs / tool).chmod(0o755)
    seen = await see_remote(SeeRemote(directory=directory), worktrees)
    assert (seen.tool, seen.host, seen.repository) == ("gh", "github.com", "a/b")
    assert seen.base == "main"
    with pytest.raises(Conflict, match="push topic first"):
        await open_pull_request(wanted, worktrees)
    git(place.repository, "update-ref", "refs/remotes/origin/topic", head)
    done = await open_pull_request(wanted, worktrees)
    assert done.url == "https://github.com/a/b/pull/7"
    asked = json.loads((home / "asked.json").read_text())
    assert asked["argv"][:4] == ["api", "--method", "POST", "repos/a/b/pulls"]
    assert asked["body"] == {
        "title": wanted.title, "head": "topic", "base": "main", "body": "", "draft": False,
    }  # fmt: skip
    assert asked["files"] == []
    no = OpenPullRequest(directory=directory, url=wanted.url, title="no", base="main")
    with pytest.raises(Conflict, match="Validation Failed"):
        await open_pull_request(no, worktrees)
    git(place.repository, "config", "remote.origin.url", "https://gitlab.com/g/s/b")
    draft = OpenPullRequest(
        directory=directory, url="https://gitlab.com/g/s/b", title="t", base="main", draft=True
    )
    await open_pull_request(draft, worktrees)
    asked = json.loads((home / "asked.json").read_text())
    assert asked["argv"][3] == "projects/g%2Fs%2Fb/merge_requests"
    assert asked["body"]["title"] == "Draft: t"
    bad = OpenPullRequest(directory=directory, url="https://gitlab.com/g/s/b", title="t", base="-x")
    with pytest.raises(LaunchError, match="not a valid branch"):
        await open_pull_request(bad, worktrees)


# --- worktrees: what will happen ---


async def test_what_will_become_of_a_worktree_is_said_before_and_nothing_is_changed(
    place: Place,
) -> None:
    worktrees, directory = place.worktrees, place.directory
    tree = await worktrees.open(directory, "task")
    (tree / "made").write_text("work\n")
    commit(tree, "work")
    (tree / "open").write_text("open\n")

    async def said(action: TreeAction) -> str:
        wanted = SettleTree(directory=directory, branch="task", action=action, dry_run=True)
        return (await settle(wanted, worktrees, lambda path, branch: False)).text

    merge = await said(TreeAction.MERGE)
    assert merge.startswith("1 commit of task will be merged into main. First, 1 uncommitted file")
    assert merge.endswith("Then its worktree and branch are removed.")
    assert "will be removed. It has 1 uncommitted file." in await said(TreeAction.DISCARD)
    assert "is kept" in await said(TreeAction.KEEP)
    assert tree.is_dir()
    assert not (place.repository / "made").exists()
    (place.repository / "made").write_text("other work\n")
    commit(place.repository, "other")
    with pytest.raises(Conflict, match="both changed made"):
        await said(TreeAction.MERGE)
    # The diff of a worktree, its files, and an undo in it.
    wanted = SeeFileChange(directory=directory, branch="task", path="made")
    assert "+work" in (await see_file_change(wanted, worktrees, place.starts)).patch
    undo = RevertChange(directory=directory, branch="task", path="open")
    await revert(undo, worktrees, place.starts)
    assert not (tree / "open").exists()
    head = SeeChanges(directory=directory, branch="task", against=Against.HEAD)
    assert (await see_changes(head, worktrees, place.starts)).since == "head"
    git(place.repository, "worktree", "remove", "--force", str(tree))
    assert "+work" in (await see_file_change(wanted, worktrees, place.starts)).patch
    with pytest.raises(Conflict, match="no worktree any more"):
        await revert(undo, worktrees, place.starts)
