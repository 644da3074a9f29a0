"""What an agent has changed: the diff of a working folder, including uncommitted changes.

Owns how it is computed: in a copy of the index, so that nothing in the folder changes, and git and
the agent do not disturb each other. `requests` is above. Everything is bounded.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.machine_requests import (
    Against,
    Changes,
    FileChange,
    SeeChanges,
    SeeFileChange,
)
from quarterdeck.worktrees.git import Git, both
from quarterdeck.worktrees.scratch import Repository, find_repository, list_untracked, scratch_index
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import HEADS, Worktrees

MOST_FILES = 2000
MOST_UNTRACKED = 5000
"""A million files that git does not ignore make no readable diff."""
LONGEST_TEXT = 8 * 1024 * 1024

DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
    "--ignore-submodules=dirty", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
    "--inter-hunk-context=0", "--no-relative", "-O/dev/null",
)  # fmt: skip
"""Each option stands against a setting of the repository, which an agent can write."""
_STATUS = {
    "A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied", "T": "retyped",
    "U": "unmerged",
}  # fmt: skip


async def see_changes(wanted: SeeChanges, worktrees: Worktrees, starts: Starts) -> Changes:
    """The diff. Raises `LaunchError` if there is nothing to compare."""
    try:
        return await _see_changes(wanted, worktrees, starts)
    except LaunchError:
        if not has_start(wanted):
            raise
        # The snapshot may lack objects: then the folder is compared to its last commit.
        return await _see_changes(replace(wanted, session=""), worktrees, starts)


def has_start(wanted: SeeChanges | SeeFileChange) -> bool:
    """Whether a snapshot is asked for."""
    return wanted.against is Against.SESSION and wanted.branch is None and wanted.session != ""


async def _see_changes(wanted: SeeChanges, worktrees: Worktrees, starts: Starts) -> Changes:
    git = worktrees.git
    limit = max(0, min(wanted.text_limit, LONGEST_TEXT))
    found = await compare(
        worktrees, starts, wanted.directory, wanted.branch, wanted.session, wanted.against
    )
    if found.tip is not None:  # a branch without a worktree
        env = await git.without_programs(found.top)
        between = (found.base, found.tip)
        changes = await _compare(git, found.top, between, env, limit, wanted.closed)
        return _with_location(changes, found, uncommitted=0)
    async with scratch_index(git, found.top, found.place) as scratch:
        env = {**scratch, **found.env}
        await _notice_new_files(git, found.top, env, found.skipped)
        comparing = _compare(git, found.top, (found.base,), env, limit, wanted.closed)
        if found.since == "head":
            changes = await comparing
            uncommitted = len(changes.files) + changes.files_left_out
        else:
            changes, uncommitted = await both(comparing, _count_open(git, found, env))
    if wanted.against is Against.HEAD:
        changes = await _with_staged(git, found.top, found.head, changes)
    return _with_location(changes, found, uncommitted=uncommitted)


async def _count_open(git: Git, found: Compared, env: dict[str, str]) -> int:
    """How many files differ from the last commit."""
    head = found.head or await empty_tree(git, found.top)
    return len((await git(found.top, *DIFF, "--name-only", "-z", head, env=env)).names)


class Compared(Value):
    """A working folder and what it is compared to."""

    top: str
    base: str
    """A commit or a tree."""
    since: str
    """As in `Changes`."""
    head: str | None = None
    tip: str | None = None
    """The commit to compare instead of the folder: the branch has no worktree."""
    branch: str | None = None
    into: str | None = None
    commits: int = 0
    env: dict[str, str] = field(default_factory=dict)
    """For git, so that it finds the base."""
    skipped: tuple[str, ...] = ()
    """New files that were there at the start of the session already."""
    place: Repository | None = None
    """Where its index is, if that is known already."""


async def compare(
    worktrees: Worktrees,
    starts: Starts,
    directory: str,
    branch: str | None,
    session: str,
    against: Against,
) -> Compared:
    """What is compared to what. Raises `LaunchError`."""
    if branch is not None:
        return await _compared_branch(worktrees, directory, branch, against)
    git = worktrees.git
    place, head = await both(
        find_repository(git, directory), worktrees.commit_of(directory, "HEAD")
    )
    found = await _compared_folder(git, starts, place.top, head, session, against)
    return replace(found, place=place)


async def _compared_folder(
    git: Git, starts: Starts, top: str, head: str | None, session: str, against: Against
) -> Compared:
    start = await starts.find(session, top) if against is Against.SESSION and session else None
    if start is not None:
        return Compared(
            top=top, base=start.tree, since="start", head=head, env=start.env, skipped=start.skipped
        )
    return Compared(top=top, base=head or await empty_tree(git, top), since="head", head=head)


async def _compared_branch(
    worktrees: Worktrees, directory: str, branch: str, against: Against
) -> Compared:
    git = worktrees.git
    await worktrees.check_name(directory, branch)
    base = await worktrees.base_of(directory, branch)
    tree = await worktrees.find(directory, branch)
    tip = await worktrees.commit_of(directory, HEADS + branch)
    if tip is None:
        raise LaunchError(f"there is no branch {branch!r}")
    began = await git(directory, "merge-base", base.commit, tip, good=(0, 1))
    counted = await git(directory, "rev-list", "--count", f"{began.text or base.commit}..{tip}")
    to_head = against is Against.HEAD and tree is not None
    return Compared(
        top=str(tree.path) if tree is not None else directory,
        base=tip if to_head else began.text or base.commit,
        since="head" if to_head else "branch",
        head=tip,
        tip=tip if tree is None else None,
        branch=branch,
        into=base.branch,
        commits=int(counted.text),
    )


async def _notice_new_files(
    git: Git, tree: str | Path, env: dict[str, str], skipped: tuple[str, ...]
) -> None:
    """Add new files to the copied index, so that they are in the diff."""
    listed, _ = await list_untracked(git, tree, env)
    left_out = set(skipped)
    new = [name for name in listed if name not in left_out]
    if new:
        names = "\0".join(new[:MOST_UNTRACKED]).encode(errors="surrogateescape")
        await git(
            tree, "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul",
            env=env, stdin=names,
        )  # fmt: skip


async def empty_tree(git: Git, tree: str) -> str:
    """The empty tree, to compare a repository without commits to."""
    return (await git(tree, "hash-object", "-t", "tree", "--stdin", stdin=b"")).text


async def _compare(
    git: Git,
    tree: str | Path,
    between: tuple[str, ...],
    env: dict[str, str],
    limit: int,
    closed: tuple[str, ...],
) -> Changes:
    """The diff, not yet with its location."""
    listed = await git(tree, *DIFF, "--raw", "--numstat", "-z", *between, env=env)
    files = _files(listed.out)
    text, cut = "", bool(files)
    if limit:
        apart = [f":(top,literal,exclude){path}" for path in closed]
        chosen = ("--", ":(top)", *apart) if apart else ()
        patterns = {**env, "GIT_LITERAL_PATHSPECS": "0"} if apart else env
        patch = await git(tree, *DIFF, "--patch", *between, *chosen, env=patterns, limit=limit)
        text, cut = patch.out.decode(errors="replace"), patch.cut
    return Changes(
        directory="",
        base="",
        files=tuple(files[:MOST_FILES]),
        files_left_out=max(0, len(files) - MOST_FILES),
        added=sum(file.added or 0 for file in files),
        removed=sum(file.removed or 0 for file in files),
        text=text,
        text_cut=cut,
        closed=closed,
    )


async def _with_staged(git: Git, top: str, head: str | None, changes: Changes) -> Changes:
    """With what of each file is in the index itself."""
    env = {**await git.without_programs(top), "GIT_OPTIONAL_LOCKS": "0"}
    against = head or await empty_tree(git, top)
    no_renames = (*DIFF, "--no-renames", "--name-only", "-z")
    staged = _printables((await git(top, *no_renames, "--cached", against, env=env)).names)
    rest = _printables((await git(top, *no_renames, env=env)).names)
    rest |= _printables((await list_untracked(git, top, env))[0])

    def state(file: FileChange) -> str:
        names = {file.path, file.old_path or file.path}
        if not names & staged:
            return "none"
        return "part" if names & rest else "all"

    return replace(
        changes, files=tuple(replace(file, staged=state(file)) for file in changes.files)
    )


def _with_location(changes: Changes, found: Compared, *, uncommitted: int) -> Changes:
    return replace(
        changes,
        directory=_printable(found.top),
        base=found.base,
        since=found.since,
        branch=found.branch,
        into=found.into,
        commits=found.commits,
        uncommitted=uncommitted,
    )


def _files(listed: bytes) -> list[FileChange]:
    """From `--raw --numstat -z`: all files, and then all files again with their lines."""
    parts = iter(listed.decode(errors="replace").split("\0"))
    found: dict[str, FileChange] = {}
    for part in parts:
        if part.startswith(":"):
            status = part.rpartition(" ")[2]
            old = next(parts, "") if status[:1] in {"R", "C"} else None
            path = next(parts, "")
            kind = _STATUS.get(status[:1], "modified")
            found[path] = FileChange(path=path, status=kind, old_path=old)
            continue
        added, _, rest = part.partition("\t")
        removed, tab, path = rest.partition("\t")
        if tab and not path:  # renamed: the old and the new name follow
            next(parts, "")
            path = next(parts, "")
        if tab and path in found:
            counts = {"added": _number(added), "removed": _number(removed)}
            found[path] = replace(found[path], **counts)
    return list(found.values())


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None  # a binary file has «-»


def _printable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _printables(names: list[str]) -> set[str]:
    return {_printable(name) for name in names}
