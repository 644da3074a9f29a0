"""What an agent has changed: the diff of a working folder, including uncommitted changes.

Owns how it is computed: in a copy of the index, so that nothing in the folder changes, and git and
the agent do not disturb each other. `requests` is above. Everything is bounded.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec.structs import replace

from quarterdeck.domain.errors import LaunchError
from quarterdeck.protocol.machine_requests import Changes, FileChange, SeeChanges
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.worktrees import HEADS, Base, Worktrees

MOST_FILES = 2000
MOST_UNTRACKED = 5000
"""A million files that git does not ignore make no readable diff."""
LONGEST_TEXT = 8 * 1024 * 1024

_DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
    "--ignore-submodules=dirty",
)  # fmt: skip
_STATUS = {
    "A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied", "T": "retyped",
    "U": "unmerged",
}  # fmt: skip


async def see_changes(wanted: SeeChanges, worktrees: Worktrees) -> Changes:
    """The diff. Raises `LaunchError` if there is nothing to compare."""
    git = worktrees.git
    limit = max(0, min(wanted.text_limit, LONGEST_TEXT))
    if wanted.branch is None:
        top = (await git(wanted.directory, "rev-parse", "--show-toplevel")).text
        head = await worktrees.commit_of(top, "HEAD")
        base = Base(commit=head or await _empty_tree(git, top))
        async with scratch_index(git, top) as env:
            await _notice_new_files(git, top, env)
            found = await _compare(git, top, (base.commit,), env, limit)
        return _with_location(found, top, base, uncommitted=len(found.files) + found.files_left_out)
    await worktrees.check_name(wanted.directory, wanted.branch)
    base = await worktrees.base_of(wanted.directory, wanted.branch)
    tree = await worktrees.find(wanted.directory, wanted.branch)
    tip = await worktrees.commit_of(wanted.directory, HEADS + wanted.branch)
    if tip is None:
        raise LaunchError(f"there is no branch {wanted.branch!r}")
    began = await git(wanted.directory, "merge-base", base.commit, tip, good=(0, 1))
    base = Base(commit=began.text or base.commit, ref=base.ref)
    counted = await git(wanted.directory, "rev-list", "--count", f"{base.commit}..{tip}")
    commits = int(counted.text)
    if tree is None:
        env = await git.without_programs(wanted.directory)
        found = await _compare(git, wanted.directory, (base.commit, tip), env, limit)
        return _with_location(found, wanted.directory, base, branch=wanted.branch, commits=commits)
    async with scratch_index(git, tree.path) as env:
        await _notice_new_files(git, tree.path, env)
        found = await _compare(git, tree.path, (base.commit,), env, limit)
        open_ = await git(tree.path, *_DIFF, "--name-only", "-z", "HEAD", env=env)
    return _with_location(
        found,
        str(tree.path),
        base,
        branch=wanted.branch,
        commits=commits,
        uncommitted=len(open_.names),
    )


@asynccontextmanager
async def scratch_index(git: Git, tree: str | Path) -> AsyncIterator[dict[str, str]]:
    """An environment with a copy of the index, in which git runs no program of the repository."""
    index = (await git(tree, "rev-parse", "--path-format=absolute", "--git-path", "index")).text
    env = await git.without_programs(tree)
    folder = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="quarterdeck-"))
    try:
        copy = Path(folder) / "index"
        await anyio.to_thread.run_sync(_copy, Path(index), copy)
        yield {**env, "GIT_INDEX_FILE": str(copy), "GIT_OPTIONAL_LOCKS": "0"}
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def list_untracked(
    git: Git, tree: str | Path, env: dict[str, str]
) -> tuple[list[str], list[str]]:
    """New files that git does not ignore; and new folders that are repositories of their own."""
    listed = await git(tree, "ls-files", "--others", "--exclude-standard", "-z", env=env)
    names = listed.names
    return (
        [name for name in names if not name.endswith("/")],
        [name for name in names if name.endswith("/")],
    )


async def _notice_new_files(git: Git, tree: str | Path, env: dict[str, str]) -> None:
    """Add new files to the copied index, so that they are in the diff."""
    new, _ = await list_untracked(git, tree, env)
    if new:
        names = "\0".join(new[:MOST_UNTRACKED]).encode(errors="surrogateescape")
        await git(
            tree, "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul",
            env=env, stdin=names,
        )  # fmt: skip


async def _empty_tree(git: Git, tree: str) -> str:
    """The empty tree, to compare a repository without commits to."""
    return (await git(tree, "hash-object", "-t", "tree", "--stdin", stdin=b"")).text


def _copy(index: Path, copy: Path) -> None:
    if index.exists():
        # With its modification time: git uses it to find files that may have changed within the
        # same second in which it last read them.
        shutil.copy2(index, copy)


async def _compare(
    git: Git, tree: str | Path, between: tuple[str, ...], env: dict[str, str], limit: int
) -> Changes:
    """The diff, not yet with its location."""
    names = (await git(tree, *_DIFF, "--name-status", "-z", *between, env=env)).out
    counts = (await git(tree, *_DIFF, "--numstat", "-z", *between, env=env)).out
    files = _files(names, counts)
    patch = await git(tree, *_DIFF, "--patch", *between, env=env, limit=limit)
    text = patch.out.decode(errors="replace")
    return Changes(
        directory="",
        base="",
        files=tuple(files[:MOST_FILES]),
        files_left_out=max(0, len(files) - MOST_FILES),
        added=sum(file.added or 0 for file in files),
        removed=sum(file.removed or 0 for file in files),
        text=text,
        text_cut=patch.cut,
    )


def _with_location(
    found: Changes,
    directory: str,
    base: Base,
    *,
    branch: str | None = None,
    commits: int = 0,
    uncommitted: int = 0,
) -> Changes:
    return replace(
        found,
        directory=_printable(directory),
        base=base.commit,
        branch=branch,
        into=base.branch if branch is not None else None,
        commits=commits,
        uncommitted=uncommitted,
    )


def _files(names: bytes, counts: bytes) -> list[FileChange]:
    """From `--name-status -z` and `--numstat -z`, which list the same files."""
    counted: dict[str, tuple[int | None, int | None]] = {}
    parts = iter(counts.decode(errors="replace").split("\0"))
    for part in parts:
        added, _, rest = part.partition("\t")
        removed, tab, path = rest.partition("\t")
        if tab:
            if not path:  # renamed: the old and the new name follow
                next(parts, "")
                path = next(parts, "")
            counted[path] = (_number(added), _number(removed))
    found: list[FileChange] = []
    parts = iter(names.decode(errors="replace").split("\0"))
    for status in parts:
        if not status:
            continue
        old = next(parts, "") if status[0] in "RC" else None
        path = next(parts, "")
        added_lines, removed_lines = counted.get(path, (None, None))
        found.append(
            FileChange(
                path=path,
                status=_STATUS.get(status[0], "modified"),
                old_path=old,
                added=added_lines,
                removed=removed_lines,
            )
        )
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None  # a binary file has «-


def _printable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")
