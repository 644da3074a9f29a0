"""Staging and committing for a person.

Owns that nothing of the repository runs: no hook, no filter of its own settings, no signing
program. `requests` is above; git is below.
"""

from __future__ import annotations

import anyio

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.machine_requests import CommitFiles, FolderDone, StageFiles
from quarterdeck.worktrees.files import checked_paths
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.scratch import list_untracked
from quarterdeck.worktrees.worktrees import Worktrees

NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Quarterdeck"), ("EMAIL", "quarterdeck@localhost"))
}


async def identity(git: Git, directory: str) -> dict[str, str]:
    """The user's identity in git; a name of ours if git has none."""
    known = await git(directory, "var", "GIT_COMMITTER_IDENT", good=(0, 128))
    return {} if known.code == 0 else NOBODY


async def top_of(worktrees: Worktrees, directory: str, branch: str | None) -> str:
    """The top folder of the session's working folder. Raises `Conflict` or `LaunchError`."""
    if branch is None:
        return (await worktrees.git(directory, "rev-parse", "--show-toplevel")).text
    await worktrees.check_name(directory, branch)
    tree = await worktrees.find(directory, branch)
    if tree is None:
        raise Conflict("no_worktree", "the session has no worktree any more")
    return str(tree.path)


async def stage(wanted: StageFiles, worktrees: Worktrees) -> FolderDone:
    """Add the files to the index, or take them out of it."""
    git = worktrees.git
    names = checked_paths(wanted.paths)
    top = await top_of(worktrees, wanted.directory, wanted.branch)
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    async with worktrees.lock(wanted.directory):
        env = await git.without_programs(top)
        if wanted.staged:
            await git(top, "add", "--all", *from_input, env=env, stdin=names)
        elif await worktrees.commit_of(top, "HEAD") is None:
            await git(
                top, "rm", "--cached", "--quiet", "--ignore-unmatch", *from_input,
                env=env, stdin=names,
            )  # fmt: skip
        else:
            await git(top, "reset", "--quiet", *from_input, "HEAD", env=env, stdin=names)
    count = len(wanted.paths)
    coded = CodedText(
        code=TextCode.FILES_STAGED if wanted.staged else TextCode.FILES_UNSTAGED,
        count=count,
        path=wanted.paths[0] if count == 1 else "",
    )
    return FolderDone(text=coded_text(coded), coded=coded, paths=wanted.paths)


async def commit(wanted: CommitFiles, worktrees: Worktrees) -> FolderDone:
    """Commit the index. Raises `Conflict` or `LaunchError`."""
    git = worktrees.git
    if not wanted.message.strip():
        raise Conflict("no_message", "a commit needs a message")
    top = await top_of(worktrees, wanted.directory, wanted.branch)
    async with worktrees.lock(wanted.directory):
        if (await git(top, "ls-files", "--unmerged", "-z")).names:
            raise Conflict("unmerged", "a merge in the folder has unresolved conflicts")
        env = await git.without_programs(top)
        with anyio.CancelScope(shield=True):
            if wanted.all_files:
                await _add_all(git, top, env)
            await _refuse_nothing(git, worktrees, top, env)
            names = (await git(top, "diff", "--cached", "--name-only", "-z", env=env)).names
            await git(
                top, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace",
                "--file=-",
                env={**env, **await identity(git, top)}, stdin=wanted.message.encode(),
            )  # fmt: skip
        made = await worktrees.commit_of(top, "HEAD") or ""
    subject = wanted.message.strip().splitlines()[0][:200]
    shown = tuple(name.encode(errors="surrogateescape").decode(errors="replace") for name in names)
    coded = CodedText(code=TextCode.COMMITTED, commit=made[:12], detail=subject)
    return FolderDone(text=coded_text(coded), coded=coded, paths=shown[:200], commit=made)


async def _add_all(git: Git, top: str, env: dict[str, str]) -> None:
    _, nested = await list_untracked(git, top, env)
    if nested:
        text = f"{nested[0]} is a repository of its own: only its commit id would be committed"
        raise Conflict("nested_repository", text.encode(errors="replace").decode())
    await git(top, "add", "--all", env=env)


async def _refuse_nothing(git: Git, worktrees: Worktrees, top: str, env: dict[str, str]) -> None:
    if await worktrees.commit_of(top, "HEAD") is None:
        empty = not (await git(top, "ls-files", "-z", env=env)).names
    else:
        found = await git(top, "diff", "--cached", "--quiet", "HEAD", env=env, good=(0, 1))
        empty = found.code == 0
    if empty:
        raise Conflict("nothing_staged", "nothing is staged: choose files first")
