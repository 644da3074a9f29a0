"""Undoing the change of a file, or of some blocks of its lines.

Owns the order: what the person has seen is still so, what would be lost is saved under a ref, and
then git applies the reversed patch, as a whole or not at all. `requests` is above. The index stays
as it is.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.domain.ids import new_id
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.machine_requests import BlockId, FolderDone, RevertChange
from quarterdeck.worktrees.changes import Compared, compare
from quarterdeck.worktrees.commits import identity
from quarterdeck.worktrees.file_diff import digest_of, exact_patch, notice_new_file
from quarterdeck.worktrees.files import checked_path
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.scratch import scratch_index
from quarterdeck.worktrees.settle import DISCARDED
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees

MOST_BLOCKS = 2000
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


async def revert(wanted: RevertChange, worktrees: Worktrees, starts: Starts) -> FolderDone:
    """Undo it. Raises `Conflict` with a code, or `LaunchError` with git's error message."""
    git = worktrees.git
    paths = [checked_path(wanted.path)]
    if wanted.old_path is not None:
        paths.append(checked_path(wanted.old_path))
    if len(wanted.blocks) > MOST_BLOCKS:
        raise Conflict("too_large", f"at most {MOST_BLOCKS} blocks can be undone at once")
    async with worktrees.lock(wanted.directory):
        found = await compare(
            worktrees, starts, wanted.directory, wanted.branch, wanted.session, wanted.against
        )
        if found.tip is not None:
            raise Conflict("no_worktree", "the branch has no worktree any more")
        with anyio.CancelScope(shield=True):  # git is bounded, and half done is worse
            async with scratch_index(git, found.top) as scratch:
                env = {**scratch, **found.env}
                await notice_new_file(git, found, env, paths[0])
                patch = await exact_patch(git, found, env, (found.base,), paths)
                if not patch:
                    raise Conflict("unchanged", f"{wanted.path!r} is not changed")
                if wanted.digest and digest_of(patch) != wanted.digest:
                    text = f"{wanted.path!r} has changed since it was shown: look at it again"
                    raise Conflict("changed_meanwhile", text)
                if wanted.blocks:
                    patch = chosen_blocks(patch, wanted.blocks)
                saved = await _save(git, found, paths)
                await _apply(git, found, env, patch)
    coded = CodedText(
        code=TextCode.CHANGE_UNDONE,
        path=wanted.path,
        count=len(wanted.blocks),
        ref=saved or "",
    )
    return FolderDone(text=coded_text(coded), coded=coded, paths=tuple(paths), saved=saved)


def chosen_blocks(patch: bytes, blocks: tuple[BlockId, ...]) -> bytes:
    """The patch with these blocks only. Raises `Conflict` if one is not in it."""
    starts = list(_HUNK.finditer(patch))
    if not starts:
        raise Conflict("no_blocks", "the file has no lines: undo the whole file")
    ends = [found.start() for found in starts[1:]] + [len(patch)]
    there = {
        BlockId(
            old_start=int(found[1]),
            old_lines=int(found[2] or 1),
            new_start=int(found[3]),
            new_lines=int(found[4] or 1),
        ): patch[found.start() : end]
        for found, end in zip(starts, ends, strict=True)
    }
    missing = [block for block in blocks if block not in there]
    if missing:
        text = f"there is no change at line {missing[0].new_start}: look at the file again"
        raise Conflict("changed_meanwhile", text)
    wanted = set(blocks)
    head = _modes_apart(patch[: starts[0].start()])
    return head + b"".join(text for block, text in there.items() if block in wanted)


def _modes_apart(head: bytes) -> bytes:
    """The head of a patch without what is about the whole file: its mode stays."""
    if b"\nnew file mode " in head or b"\ndeleted file mode " in head:
        raise Conflict("no_blocks", "the file is new or deleted: undo the whole file")
    kept = [line for line in head.split(b"\n") if not line.startswith((b"old mode", b"new mode"))]
    return b"\n".join(kept)


async def _apply(git: Git, found: Compared, env: dict[str, str], patch: bytes) -> None:
    try:
        await git(
            found.top, "apply", "--reverse", "--unidiff-zero", "--whitespace=nowarn", "-",
            env=env, stdin=patch,
        )  # fmt: skip
    except LaunchError as error:
        raise Conflict("not_undone", f"nothing was changed: {error}") from error


async def _save(git: Git, found: Compared, paths: list[str]) -> str | None:
    """Save the files as they are now under a ref; None if there is none to save."""
    there = [path for path in paths if await anyio.to_thread.run_sync(_is_there, found.top, path)]
    if not there:
        return None
    async with scratch_index(git, found.top) as env:
        await git(found.top, "read-tree", "--empty", env=env)
        await git(found.top, "add", "--force", "--", *there, env=env)
        tree = (await git(found.top, "write-tree", env=env)).text
    parent = ("-p", found.head) if found.head else ()
    made = await git(
        found.top, "commit-tree", tree, *parent,
        env=await identity(git, found.top), stdin=b"A file before its change was undone\n",
    )  # fmt: skip
    ref = f"{DISCARDED}undone-{time.strftime('%Y%m%d')}-{new_id()[-6:]}"
    await git(found.top, "update-ref", ref, made.text, "")
    return ref


def _is_there(top: str, path: str) -> bool:
    return os.path.lexists(Path(top) / path)
