"""What was in a working folder when a session started, so that its changes can be told from others.

Owns the snapshots: a tree of the folder with all that was not committed. Its objects are in the
runner's own folder, beside a reference to those of the repository, so that nothing is written into
the repository. `changes` is above; git is below. A snapshot that cannot be made is left out: the
folder is then compared to its last commit.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import field

from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.runtime.files import replace_file
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.scratch import list_untracked, scratch_index

log = logging.getLogger("quarterdeck.runner")

SECONDS = 10.0
"""An agent does not wait longer for it than that."""
MOST_NEW = 5000
LARGEST_NEW = 4 * 1024 * 1024
"""New files that are larger are known by their names only."""
MOST_KEPT = 1000
KEPT_DAYS = 90
_RECORD = "start.json"


class Start(Value):
    """A snapshot, and the environment in which git finds it."""

    top: str
    tree: str
    at: float = 0.0
    skipped: tuple[str, ...] = ()
    """New files that are not in it, but were there."""
    env: dict[str, str] = field(default_factory=dict)


class Starts:
    """The snapshots of one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, git: Git, session: str, directory: str) -> None:
        """Take the snapshot of a session, unless there is one. It never raises."""
        place = self._place(session)
        if await anyio.to_thread.run_sync(_is_known_or_no_repository, place, Path(directory)):
            return
        try:
            with anyio.fail_after(SECONDS):
                await self._take(git, place, directory)
        except (LaunchError, OSError, TimeoutError) as error:
            log.info("no snapshot of %s for session %s: %s", directory, session, error)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))

    async def find(self, session: str, top: str) -> Start | None:
        """The snapshot, if it is of this folder.

        It may lack objects: those of commits that are gone from the repository.
        """
        place = self._place(session)
        try:
            record = await anyio.Path(place / _RECORD).read_bytes()
            start = msgspec.json.decode(record, type=Start)
        except (OSError, msgspec.DecodeError):
            return None
        if start.top != _text(top):
            return None
        return msgspec.structs.replace(start, env=_read_environment(place / "objects"))

    def prune(self) -> None:
        """Remove the snapshots that are too old, or too many. Blocks."""
        if not self._folder.is_dir():
            return
        found = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        oldest = time.time() - KEPT_DAYS * 86400
        for number, path in enumerate(found):
            if number >= MOST_KEPT or path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)

    def _place(self, session: str) -> Path:
        return self._folder / hashlib.sha256(session.encode()).hexdigest()[:32]

    async def _take(self, git: Git, place: Path, directory: str) -> None:
        top = (await git(directory, "rev-parse", "--show-toplevel")).text
        objects = (
            await git(top, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        ).text
        ours = place / "objects"
        await anyio.to_thread.run_sync(_make, ours, objects)
        async with scratch_index(git, top) as scratch:
            env = {**scratch, "GIT_OBJECT_DIRECTORY": str(ours)}
            await git(top, "add", "--update", env=env)
            new, _ = await list_untracked(git, top, env)
            small, skipped = await anyio.to_thread.run_sync(_by_size, Path(top), new)
            if small:
                names = "\0".join(small).encode(errors="surrogateescape")
                await git(
                    top, "add", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul",
                    env=env, stdin=names,
                )  # fmt: skip
            tree = (await git(top, "write-tree", env=env)).text
        start = Start(top=_text(top), tree=tree, at=time.time(), skipped=tuple(map(_text, skipped)))
        await anyio.to_thread.run_sync(replace_file, place / _RECORD, msgspec.json.encode(start))


def _is_known_or_no_repository(place: Path, directory: Path) -> bool:
    """Without a process: most folders in tests and scripts are no repositories."""
    if (place / _RECORD).exists():
        return True
    return not any((folder / ".git").exists() for folder in (directory, *directory.parents))


def _make(ours: Path, objects: str) -> None:
    (ours / "info").mkdir(mode=0o700, parents=True, exist_ok=True)
    (ours / "info" / "alternates").write_bytes(objects.encode(errors="surrogateescape") + b"\n")


def _by_size(top: Path, names: list[str]) -> tuple[list[str], list[str]]:
    """New files that the snapshot has, and those that it only knows."""
    small: list[str] = []
    skipped: list[str] = []
    for name in names:
        try:
            fits = (top / name).lstat().st_size <= LARGEST_NEW and len(small) < MOST_NEW
        except OSError:
            continue
        (small if fits else skipped).append(name)
    return small, skipped[:MOST_NEW]


def _read_environment(objects: Path) -> dict[str, str]:
    """The environment in which git reads these objects too."""
    quoted = str(objects).replace("\\", "\\\\").replace('"', '\\"')
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"'}


def _text(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")
