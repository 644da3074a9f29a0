"""A git worktree for a run: found again, or made, one at a time per repository.

Owns where worktrees are and what may be a branch's name. A `Run` stands above it; below it is git.
It never removes one: there may be work in it.

They are under the runner's home, by repository and branch, and not inside the repository: its
status stays clean, and no tool that walks the repository meets itself again.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import anyio

from quarterdeck.domain.errors import LaunchError
from quarterdeck.links.environment import child_environment

_WORDS = re.compile(r"[^A-Za-z0-9._-]+")


class Worktrees:
    """The worktrees of one machine. One object per runner: it holds the locks."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._locks: dict[str, asyncio.Lock] = {}

    async def open(self, directory: str, branch: str) -> Path:
        """Where to work: in the branch's worktree, as deep in it as `directory` is in its own.

        Raises `LaunchError`, with git's own words where it has some.
        """
        below = await self._git(directory, "rev-parse", "--show-prefix")
        common = await self._git(
            directory, "rev-parse", "--path-format=absolute", "--git-common-dir"
        )
        await self._check(directory, branch)
        async with self._locks.setdefault(common, asyncio.Lock()):
            tree = await self._existing(directory, branch)
            if tree is None:
                tree = self._place(common, branch)
                await self._make(directory, branch, tree)
        inner = tree / below
        return inner if await anyio.Path(inner).is_dir() else tree

    async def _check(self, directory: str, branch: str) -> None:
        """Refuse what git would take for an option, a revision, or another name than it is."""
        if branch.startswith("-") or branch in {"HEAD", "@"} or "\0" in branch:
            raise LaunchError(f"worktree: {branch!r} cannot be the name of a branch")
        try:
            await self._git(directory, "check-ref-format", f"refs/heads/{branch}")
        except LaunchError:
            raise LaunchError(f"worktree: {branch!r} cannot be the name of a branch") from None

    async def _existing(self, directory: str, branch: str) -> Path | None:
        await self._git(directory, "worktree", "prune")
        listed = await self._git(directory, "worktree", "list", "--porcelain")
        for number, entry in enumerate(listed.split("\n\n")):
            fields = dict(line.partition(" ")[::2] for line in entry.splitlines())
            if fields.get("branch") != f"refs/heads/{branch}":
                continue
            if number == 0:  # git lists the repository itself first
                raise LaunchError(
                    f"worktree: the branch {branch!r} is checked out in the repository itself"
                    f" ({fields['worktree']}); name another, or work there without a worktree"
                )
            return Path(fields["worktree"])
        return None

    def _place(self, common: str, branch: str) -> Path:
        """A folder that no other branch of no other repository gets."""
        repository = Path(common)
        name = repository.parent.name if repository.name == ".git" else repository.stem
        return self._folder / _slug(name, common) / _slug(branch, branch)

    async def _make(self, directory: str, branch: str, tree: Path) -> None:
        await anyio.Path(tree.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        if await anyio.Path(tree).exists():
            raise LaunchError(f"worktree: {tree} is in the way: git does not know it as a worktree")
        known = await self._git(
            directory, "for-each-ref", "--format=%(refname)", f"refs/heads/{branch}"
        )
        if f"refs/heads/{branch}" in known.splitlines():
            await self._git(directory, "worktree", "add", "--", str(tree), branch)
        else:
            await self._git(directory, "worktree", "add", "-b", branch, "--", str(tree), "HEAD")

    async def _git(self, directory: str, *arguments: str) -> str:
        """Run git there; gives what it said, without the newline at its end."""
        env = {**child_environment(), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            process = await asyncio.create_subprocess_exec(
                "git", "-C", directory, *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise LaunchError(f"worktree: git could not be started: {error}") from error
        try:
            with anyio.fail_after(self._seconds):
                said, complained = await process.communicate()
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await _kill(process)
            if isinstance(error, TimeoutError):
                raise LaunchError(
                    f"worktree: `git {arguments[0]}` did not end within {self._seconds:g} s"
                ) from None
            raise
        if process.returncode != 0:
            words = complained.decode(errors="replace").strip() or f"code {process.returncode}"
            raise LaunchError(f"worktree: `git {' '.join(arguments[:2])}` failed: {words}")
        return said.decode(errors="surrogateescape").removesuffix("\n")


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End git and what it started: hooks and filters are in its group."""
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(5):
        await process.communicate()


def _slug(name: str, unique: str) -> str:
    digest = hashlib.sha256(unique.encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{_WORDS.sub('-', name)[:60].strip('.-') or 'x'}-{digest}"
