"""The diff of one file, with all its lines, so that a page can colour it and show more of it.

Owns its limits, and the digest by which a revert knows what a person has seen. `requests` and
`revert` are above; `changes` and git are below.
"""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from quarterdeck.domain.errors import LaunchError
from quarterdeck.protocol.machine_requests import FileDiff, SeeFileChange
from quarterdeck.worktrees.changes import DIFF, Compared, compare, has_start
from quarterdeck.worktrees.files import checked_path
from quarterdeck.worktrees.git import Git, both
from quarterdeck.worktrees.scratch import scratch_index
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees

WHOLE = 2 * 1024 * 1024
"""A diff with all lines is at most so long. Otherwise it has three lines of context."""
LONGEST = 8 * 1024 * 1024
_ALL_LINES = "--unified=100000000"


async def see_file_change(wanted: SeeFileChange, worktrees: Worktrees, starts: Starts) -> FileDiff:
    """The diff of one file. Raises `LaunchError` or `Conflict`."""
    try:
        return await _see_file_change(wanted, worktrees, starts)
    except LaunchError:
        if not has_start(wanted):
            raise
        return await _see_file_change(replace(wanted, session=""), worktrees, starts)


async def _see_file_change(wanted: SeeFileChange, worktrees: Worktrees, starts: Starts) -> FileDiff:
    git = worktrees.git
    paths = [checked_path(wanted.path)]
    if wanted.old_path is not None:
        paths.append(checked_path(wanted.old_path))
    found = await compare(
        worktrees, starts, wanted.directory, wanted.branch, wanted.session, wanted.against
    )
    if found.tip is not None:
        env = await git.without_programs(found.top)
        return await _diff(git, found, env, (found.base, found.tip), paths, wanted)
    async with scratch_index(git, found.top, found.place) as scratch:
        env = {**scratch, **found.env}
        await notice_new_file(git, found, env, paths[0])
        return await _diff(git, found, env, (found.base,), paths, wanted)


async def notice_new_file(git: Git, found: Compared, env: dict[str, str], path: str) -> None:
    """Have a new file in the copied index, so that it is in the diff."""
    listed = await git(
        found.top, "ls-files", "--others", "--exclude-standard", "-z", "--", path, env=env
    )
    if path in listed.names:
        await git(found.top, "add", "--intent-to-add", "--", path, env=env)


async def _diff(
    git: Git,
    found: Compared,
    env: dict[str, str],
    between: tuple[str, ...],
    paths: list[str],
    wanted: SeeFileChange,
) -> FileDiff:
    patch, exact = await both(
        git(found.top, *DIFF, _ALL_LINES, *between, "--", *paths, env=env, limit=WHOLE),
        exact_patch(git, found, env, between, paths),
    )
    whole = not patch.cut
    if patch.cut:
        patch = await git(
            found.top, *DIFF, "--unified=3", *between, "--", *paths, env=env, limit=LONGEST
        )
    binary = b"\nBinary files " in b"\n" + patch.out[:4096]
    return FileDiff(
        directory=found.top.encode(errors="surrogateescape").decode(errors="replace"),
        path=wanted.path,
        old_path=wanted.old_path,
        binary=binary,
        patch=patch.out.decode(errors="replace"),
        whole=whole and not binary,
        cut=patch.cut,
        digest=digest_of(exact),
    )


async def exact_patch(
    git: Git, found: Compared, env: dict[str, str], between: tuple[str, ...], paths: list[str]
) -> bytes:
    """The shortest patch that has everything: binary contents, modes, and no context."""
    options = ("--binary", "--full-index", "--no-renames", "--unified=0")
    return (await git(found.top, *DIFF, *options, *between, "--", *paths, env=env)).out


def digest_of(patch: bytes) -> str:
    """What a person has seen, in short."""
    return hashlib.sha256(patch).hexdigest()[:32]
