"""A git worktree for a run: found again or created, one at a time per repository.

Owns where worktrees are, which branch names are valid, and the base of each branch. A `Run` and
`settle` are above; git is below. It never removes one: there may be work in it.

They are under the runner's home, by repository and branch, and not inside the repository: its
status stays clean, and no tool that walks the repository finds a copy of it. For a branch that is
created here, `refs/quarterdeck/base/BRANCH` records its base: it points to the branch that was
checked out, or to the commit if there was no branch.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.scratch import scratch_index

HEADS = "refs/heads/"
BASES = "refs/quarterdeck/base/"

_WORDS = re.compile(r"[^A-Za-z0-9._-]+")


class Tree(Value):
    """A worktree as git lists it. `ref` is None if no branch is checked out."""

    path: Path
    head: str | None = None
    ref: str | None = None
    main: bool = False
    """The repository itself."""


class Base(Value):
    """The base of a branch, for diffs and merges. `ref` is None if it is only a commit."""

    commit: str
    ref: str | None = None

    @property
    def branch(self) -> str | None:
        """The branch's name."""
        return None if self.ref is None else self.ref.removeprefix(HEADS)


class Worktrees:
    """The worktrees of one machine. One object per runner: it holds the locks."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.git = Git(seconds)
        self._locks: dict[str, asyncio.Lock] = {}

    async def open(self, directory: str, branch: str, *, like: str | None = None) -> Path:
        """The folder to work in: the same subfolder of the branch's worktree as `directory`.

        A new branch begins with the files of the folder `like`, a worktree of the same repository,
        also with those that are not committed. Raises `LaunchError`, with git's error message if
        there is one.
        """
        below = await self._ask(directory, "rev-parse", "--show-prefix")
        await self.check_name(directory, branch)
        async with self.lock(directory) as common:
            found = await self.find(directory, branch)
            tree = self.place(common, branch) if found is None else found.path
            if found is None:
                await self._make(directory, branch, tree, like)
        inner = tree / below
        return inner if await anyio.Path(inner).is_dir() else tree

    @asynccontextmanager
    async def lock(self, directory: str) -> AsyncIterator[str]:
        """One at a time per repository; yields the folder of the repository's own data."""
        common = await self._ask(
            directory, "rev-parse", "--path-format=absolute", "--git-common-dir"
        )
        async with self._locks.setdefault(common, asyncio.Lock()):
            yield common

    async def check_name(self, directory: str, branch: str) -> None:
        """Refuse names that git would take for an option, a revision, or another name."""
        if branch.startswith("-") or branch in {"HEAD", "@"} or "\0" in branch:
            raise LaunchError(f"worktree: {branch!r} is not a valid branch name")
        try:
            await self.git(directory, "check-ref-format", f"{HEADS}{branch}")
        except LaunchError:
            raise LaunchError(f"worktree: {branch!r} is not a valid branch name") from None

    async def find(self, directory: str, branch: str) -> Tree | None:
        """The worktree of a branch. Raises `LaunchError` if that is the repository itself."""
        await self.git(directory, "worktree", "prune")
        for tree in await self.trees(directory):
            if tree.ref == HEADS + branch:
                if tree.main:
                    raise LaunchError(
                        f"worktree: the branch {branch!r} is checked out in the repository itself"
                        f" ({tree.path}); name another branch, or work there without a worktree"
                    )
                return tree
        return None

    async def trees(self, directory: str) -> list[Tree]:
        """All worktrees of a repository; git lists the repository itself first."""
        listed = await self._ask(directory, "worktree", "list", "--porcelain")
        found: list[Tree] = []
        for number, entry in enumerate(listed.split("\n\n")):
            fields = dict(line.partition(" ")[::2] for line in entry.splitlines())
            if "worktree" in fields:
                found.append(
                    Tree(
                        path=Path(fields["worktree"]),
                        head=fields.get("HEAD"),
                        ref=fields.get("branch"),
                        main=number == 0,
                    )
                )
        return found

    async def base_of(self, directory: str, branch: str) -> Base:
        """The base of a branch: as recorded when it was created, or what is checked out."""
        noted = await self._ask(directory, "symbolic-ref", "-q", BASES + branch, good=(0, 1, 128))
        if noted and (commit := await self.commit_of(directory, noted)):
            return Base(commit=commit, ref=noted)
        if not noted and (commit := await self.commit_of(directory, BASES + branch)):
            return Base(commit=commit)
        main = (await self.trees(directory))[0]
        if main.head is None:
            raise LaunchError("worktree: the repository has no branch checked out to compare to")
        return Base(commit=main.head, ref=main.ref)

    async def commit_of(self, directory: str, ref: str) -> str | None:
        """The commit of a ref."""
        found = await self._ask(
            directory, "rev-parse", "-q", "--verify", f"{ref}^{{commit}}", good=(0, 1, 128)
        )
        return found or None

    def place(self, common: str, branch: str) -> Path:
        """A folder that is unique to this repository and branch."""
        repository = Path(common)
        name = repository.parent.name if repository.name == ".git" else repository.stem
        return self.folder / _slug(name, common) / _slug(branch, branch)

    async def _make(self, directory: str, branch: str, tree: Path, like: str | None) -> None:
        await anyio.Path(tree.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        if await anyio.Path(tree).exists():
            raise LaunchError(f"worktree: {tree} exists, and git does not know it as a worktree")
        # Checking out files would run the filters that the repository's own settings name.
        env = await self.git.without_programs(directory)
        known = await self._ask(directory, "for-each-ref", "--format=%(refname)", HEADS + branch)
        if HEADS + branch in known.splitlines():
            await self.git(directory, "worktree", "add", "--", str(tree), branch, env=env)
            return
        start, files = "HEAD", None
        if like is not None:
            start = (await self.git(like, "rev-parse", "--verify", "HEAD^{commit}")).text
            files = await self._files_of(like)
        await self._note_base(directory, branch)
        await self.git(directory, "worktree", "add", "-b", branch, "--", str(tree), start, env=env)
        if files is not None:
            await self.git(tree, "read-tree", "--reset", "-u", files, env=env)
            # What was not committed there is not committed here.
            await self.git(tree, "read-tree", "HEAD", env=env)

    async def _files_of(self, folder: str) -> str:
        """A tree of a folder's files, with what is not committed; what git ignores is left out."""
        async with scratch_index(self.git, folder) as env:
            top = (await self.git(folder, "rev-parse", "--show-toplevel")).text
            await self.git(top, "add", "--all", env=env)
            return (await self.git(top, "write-tree", env=env)).text

    async def _note_base(self, directory: str, branch: str) -> None:
        head = await self._ask(directory, "symbolic-ref", "-q", "HEAD", good=(0, 1))
        if head.startswith(HEADS):
            await self.git(directory, "symbolic-ref", BASES + branch, head)
        else:
            await self.git(directory, "update-ref", BASES + branch, "HEAD")

    async def _ask(self, directory: str, *arguments: str, good: tuple[int, ...] = (0,)) -> str:
        result = await self.git(directory, *arguments, good=good)
        return result.text if result.code == 0 else ""


def _slug(name: str, unique: str) -> str:
    digest = hashlib.sha256(unique.encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{_WORDS.sub('-', name)[:60].strip('.-') or 'x'}-{digest}"
