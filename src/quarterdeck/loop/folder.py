"""The folder in which a loop works: what a turn has changed, and a commit for each turn.

In a git repository the state of the files is a tree that git makes from a copy of the index, so
that nothing of the repository changes but its objects. Elsewhere it is a digest of names, sizes and
times. The programs that a repository's configuration names are not run.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import anyio.to_thread

from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.scratch import scratch_index
from quarterdeck.worktrees.worktrees import Worktrees

GIT_SECONDS = 120.0
MOST_FILES = 50_000
LONGEST_DIFF = 60_000
"""Bytes of a turn's diff that the reviewer is shown."""
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})
_NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Quarterdeck"), ("EMAIL", "quarterdeck@localhost"))
}


class WorkFolder:
    """A folder, and what is asked of it around each turn."""

    def __init__(self, directory: str, git: Git | None = None) -> None:
        self.directory = directory
        self._git = git or Git(GIT_SECONDS)

    async def is_repository(self) -> bool:
        """Whether it is in the working folder of a git repository."""
        try:
            found = await self._git(
                self.directory, "rev-parse", "--is-inside-work-tree", good=(0, 128)
            )
        except LaunchError:
            return False
        return found.text == "true"

    async def state(self) -> str | None:
        """The state of its files, to be compared; None if it cannot be found out."""
        if not await self.is_repository():
            return await anyio.to_thread.run_sync(_digest, self.directory)
        try:
            top = (await self._git(self.directory, "rev-parse", "--show-toplevel")).text
            async with scratch_index(self._git, top) as env:
                await self._git(top, "add", "--all", "--", ".", env=env)
                return (await self._git(top, "write-tree", env=env)).text
        except LaunchError:
            return None

    async def diff(self, before: str | None, after: str | None) -> str:
        """The difference between two states, cut where it is long; empty outside of git."""
        if before is None or after is None or before == after or not await self.is_repository():
            return ""
        try:
            env = await self._git.without_programs(self.directory)
            found = await self._git(
                self.directory, "diff", "--no-ext-diff", "--no-textconv", "--no-color",
                before, after, env=env, limit=LONGEST_DIFF,
            )  # fmt: skip
        except LaunchError:
            return ""
        text = found.out.decode(errors="replace")
        return f"{text}\n… (cut)" if found.cut else text

    async def commit(self, message: str) -> str | None:
        """Commit all changes; gives the commit, or None if there is nothing to commit.

        Raises `LaunchError` with git's message.
        """
        env = await self._git.without_programs(self.directory)
        top = (await self._git(self.directory, "rev-parse", "--show-toplevel")).text
        await self._git(top, "add", "--all", env=env)
        staged = await self._git(top, "diff", "--cached", "--quiet", env=env, good=(0, 1))
        if staged.code == 0:
            return None
        who = await self._git(top, "config", "user.email", good=(0, 1))
        await self._git(
            top, "commit", "--quiet", "--no-verify", "--file=-",
            env={**env, **({} if who.text else _NOBODY)},
            stdin=message.encode(errors="replace"),
        )  # fmt: skip
        return (await self._git(top, "rev-parse", "HEAD")).text


async def open_worktree(home: Path, directory: str, branch: str) -> str:
    """The worktree of a branch, found or made. Raises `LaunchError`."""
    return str(await Worktrees(home, GIT_SECONDS).open(directory, branch))


def check_directory(directory: str) -> None:
    """Refuse a folder that is not there."""
    if not Path(directory).is_dir():
        raise UsageError(f"directory: {directory} is not a folder")


def _digest(directory: str) -> str | None:
    """Names, sizes and times of all files; None if there are too many."""
    digest = hashlib.blake2b(digest_size=16)
    count = 0
    for folder, inner, names in os.walk(directory):
        inner[:] = sorted(name for name in inner if name not in _SKIPPED)
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                return None
            path = Path(folder, name)
            try:
                found = path.lstat()
            except OSError:
                continue
            fact = f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0{found.st_mode}\n"
            digest.update(fact.encode(errors="surrogateescape"))
    return digest.hexdigest()
