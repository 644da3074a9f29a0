"""A copy of a repository's index to work in, so that nothing in the folder changes.

Owns the copy. `changes`, `starts`, `revert` and `settle` are above; git is below. Git and the agent
do not disturb each other.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.structs import Value
from quarterdeck.worktrees.git import Git, both


class Repository(Value):
    """What has to be known of a repository before its files are looked at."""

    top: str
    index: str
    programs: dict[str, str]
    """The environment in which git runs no program of the repository."""


async def find_repository(git: Git, directory: str | Path) -> Repository:
    """The repository of a folder, with few processes: each takes longer to start than to answer."""
    where = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index")
    found, env = await both(git(directory, *where), git.without_programs(directory))
    lines = found.text.split("\n")
    if len(lines) == 2:
        return Repository(top=lines[0], index=lines[1], programs=env)
    # A folder may have a line break in its name.
    top = (await git(directory, "rev-parse", "--show-toplevel")).text
    index = found.text.removeprefix(top + "\n")
    return Repository(top=top, index=index, programs=env)


@asynccontextmanager
async def scratch_index(
    git: Git, tree: str | Path, known: Repository | None = None
) -> AsyncIterator[dict[str, str]]:
    """An environment with a copy of the index, in which git runs no program of the repository."""
    found = known or await find_repository(git, tree)
    index, env = found.index, found.programs
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


def _copy(index: Path, copy: Path) -> None:
    if index.exists():
        # With its modification time: git uses it to find files that may have changed within the
        # same second in which it last read them.
        shutil.copy2(index, copy)
