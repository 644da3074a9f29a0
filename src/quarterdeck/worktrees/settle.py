"""Settling a worktree: merge, keep or discard it, without losing work.

Owns the order of the steps. `requests` is above; `worktrees` and git are below. Work that would be
lost is saved first under `refs/quarterdeck/discarded/`; if it cannot be saved, the request is
refused. A merge is made beside the working folders and takes effect in one step, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.domain.ids import new_id
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.machine_requests import Settled, SettleTree, TreeAction
from quarterdeck.worktrees.commits import identity
from quarterdeck.worktrees.git import Git
from quarterdeck.worktrees.scratch import list_untracked, scratch_index
from quarterdeck.worktrees.worktrees import BASES, HEADS, Base, Tree, Worktrees

DISCARDED = "refs/quarterdeck/discarded/"
_GITLINK = "160000"

Busy = Callable[[Path, str], bool]
"""Whether a run works in this folder, or is being started on this branch."""


async def settle(wanted: SettleTree, worktrees: Worktrees, busy: Busy) -> Settled:
    """Settle it. Raises `Conflict` with a code, or `LaunchError` with git's error message."""
    await worktrees.check_name(wanted.directory, wanted.branch)
    async with worktrees.lock(wanted.directory) as common:
        settling = _Settlement(wanted, worktrees, common, busy)
        does = {
            TreeAction.MERGE: settling.merge,
            TreeAction.KEEP: settling.keep,
            TreeAction.DISCARD: settling.discard,
        }
        done: list[Settled] = []
        # Shielded: a cancellation between two steps would leave it half done. Git is bounded.
        with anyio.CancelScope(shield=True):
            await settling.look()
            done.append(await (settling.preview() if wanted.dry_run else does[wanted.action]()))
    return done[0]


class _Settlement:
    """One worktree that is being settled."""

    def __init__(self, wanted: SettleTree, worktrees: Worktrees, common: str, busy: Busy) -> None:
        self._wanted = wanted
        self._worktrees = worktrees
        self._git: Git = worktrees.git
        self._directory, self._branch = wanted.directory, wanted.branch
        self._place = worktrees.place(common, wanted.branch)
        self._is_busy = busy
        self._tree: Tree | None = None
        self._tip: str | None = None

    async def look(self) -> None:
        """Find the worktree and the branch: by the branch, or in the folder made for it."""
        self._tree = await self._worktrees.find(self._directory, self._branch)
        if self._tree is None:
            place = self._place.resolve()
            trees = await self._worktrees.trees(self._directory)
            self._tree = next((tree for tree in trees if tree.path.resolve() == place), None)
        self._tip = await self._worktrees.commit_of(self._directory, HEADS + self._branch)
        if self._tip is None and self._tree is None:
            text = f"there is no branch {self._branch!r} and no worktree of it"
            raise Conflict("no_worktree", text)

    def _coded_text(self, code: TextCode, **more: Any) -> CodedText:
        return CodedText(code=code, name=self._branch, **more)

    async def preview(self) -> Settled:
        """What the action would do. Raises as the action itself would; nothing is changed."""
        action = self._wanted.action
        if action is TreeAction.KEEP:
            return await self.keep()
        changed = await self._status(self._tree.path) if self._tree is not None else []
        if action is TreeAction.DISCARD:
            self._refuse_discard()
            coded = self._coded_text(TextCode.WOULD_DISCARD, count=len(changed))
            return Settled(action=action, branch=self._branch, text=coded_text(coded), coded=coded)
        self._refuse_moved()
        base = await self._base()
        assert self._tip is not None
        counted = await self._git(
            self._directory, "rev-list", "--count", f"{base.commit}..{self._tip}"
        )
        await self._merge_commit(base, self._tip)  # raises if there is a conflict
        free = self._tree is None or (self._is_ours() and not self._works())
        coded = self._coded_text(
            TextCode.WOULD_MERGE,
            other=base.branch,
            count=int(counted.text),
            most=len(changed),
            more=CodedText(code=TextCode.WORKTREE_WILL_GO if free else TextCode.WORKTREE_STAYS),
        )
        return Settled(
            action=action,
            branch=self._branch,
            text=coded_text(coded),
            coded=coded,
            into=base.branch,
            removed=free,
        )

    async def keep(self) -> Settled:
        """Keep everything, and report where it is."""
        where = _text(self._tree.path) if self._tree else ""
        coded = self._coded_text(TextCode.BRANCH_KEPT, path=where)
        return Settled(
            action=TreeAction.KEEP, branch=self._branch, text=coded_text(coded), coded=coded
        )

    # --- merge ---

    async def merge(self) -> Settled:
        """Merge the branch into its base."""
        self._refuse_moved()
        base = await self._base()
        assert base.ref is not None
        assert self._tip is not None
        await self._commit_rest()
        merged = await self._merge_commit(base, self._tip)
        if merged != base.commit:
            await self._advance(base, merged)
        removed = await self._remove_if_free()
        already = merged == base.commit
        coded = self._coded_text(
            TextCode.BRANCH_IN_BASE if already else TextCode.BRANCH_MERGED,
            other=base.branch,
            commit="" if already else merged[:12],
            more=_tree_after(removed=removed),
        )
        return Settled(
            action=TreeAction.MERGE,
            branch=self._branch,
            text=coded_text(coded),
            coded=coded,
            into=base.branch,
            commit=merged,
            removed=removed,
        )

    def _refuse_moved(self) -> None:
        if self._tip is None or (self._tree and self._tree.ref != HEADS + self._branch):
            at = "no branch" if self._tree is None or not self._tree.ref else self._tree.ref
            text = f"the worktree is no longer on {self._branch!r}, but on {at}: merge by hand"
            raise Conflict("moved", text)

    async def _base(self) -> Base:
        if self._wanted.into is None:
            base = await self._worktrees.base_of(self._directory, self._branch)
            if base.ref is None:
                text = "the branch was made from a commit on no branch: name a branch to merge into"
                raise Conflict("no_base", text)
        else:
            await self._worktrees.check_name(self._directory, self._wanted.into)
            ref = HEADS + self._wanted.into
            commit = await self._worktrees.commit_of(self._directory, ref)
            if commit is None:
                raise Conflict("no_base", f"there is no branch {self._wanted.into!r}")
            base = Base(commit=commit, ref=ref)
        if base.ref == HEADS + self._branch:
            raise Conflict("no_base", f"{self._branch!r} cannot be merged into itself")
        return base

    async def _commit_rest(self) -> None:
        """Commit uncommitted changes if a message is given; otherwise refuse if there are any."""
        if self._tree is None:
            return
        tree = self._tree.path
        changed = await self._status(tree)
        if not changed:
            return
        if self._wanted.message is None:
            some = ", ".join(_text(name) for name in changed[:5])
            more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
            text = f"not committed in {_text(tree)}: {some}{more}; commit them, or give a message"
            raise Conflict("uncommitted", text)
        if (await self._git(tree, "ls-files", "--unmerged", "-z")).names:
            raise Conflict("unmerged", f"a merge in {_text(tree)} has unresolved conflicts")
        env = await self._git.without_programs(tree)
        await self._refuse_nested(tree, env)
        await self._git(tree, "add", "--all", env=env)
        await self._git(
            tree, "commit", "--quiet", "--no-verify", "--file=-",
            env={**env, **await self._identity()},
            stdin=self._wanted.message.encode(),
        )  # fmt: skip
        self._tip = await self._worktrees.commit_of(self._directory, HEADS + self._branch)

    async def _merge_commit(self, base: Base, before: str) -> str:
        """The new commit of the base. Nothing has changed when this raises."""
        tip = self._tip or before
        if await self._contains(base.commit, tip):
            return base.commit
        if await self._contains(tip, base.commit):
            return tip
        env = await self._git.without_programs(self._directory)
        made = await self._git(
            self._directory, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z",
            base.commit, tip, env=env, good=(0, 1),
        )  # fmt: skip
        tree, *conflicts = made.names
        if made.code == 1:
            some = ", ".join(_text(name) for name in conflicts[:10])
            more = f" and {len(conflicts) - 10} more" if len(conflicts) > 10 else ""
            text = f"{self._branch} and {base.branch} both changed {some}{more}; nothing was merged"
            raise Conflict("merge_conflict", text)
        message = f"Merge branch '{self._branch}' into {base.branch}\n"
        commit = await self._git(
            self._directory, "commit-tree", tree, "-p", base.commit, "-p", tip,
            env=await self._identity(), stdin=message.encode(errors="surrogateescape"),
        )  # fmt: skip
        return commit.text

    async def _advance(self, base: Base, merged: str) -> None:
        """Move the base to the merged commit, with the folder where it is checked out."""
        assert base.ref is not None
        trees = await self._worktrees.trees(self._directory)
        there = next((tree for tree in trees if tree.ref == base.ref), None)
        if there is None:
            await self._git(
                self._directory, "update-ref", "-m", f"quarterdeck: merge {self._branch}",
                base.ref, merged, base.commit,
            )  # fmt: skip
            return
        env = await self._git.without_programs(there.path)
        try:
            # Git itself refuses to overwrite uncommitted changes, before it changes anything.
            await self._git(there.path, "merge", "--ff-only", "--quiet", merged, env=env)
        except LaunchError as error:
            text = f"{base.branch} is checked out in {_text(there.path)} and was not moved: {error}"
            raise Conflict("base_in_use", text) from error

    async def _remove_if_free(self) -> bool:
        """Remove an unused worktree of ours; never one that has something in it."""
        if self._tree is not None and (not self._is_ours() or self._works()):
            return False
        if self._tree is not None:
            try:
                await self._git(self._directory, "worktree", "remove", str(self._tree.path))
            except LaunchError:
                return False  # a submodule, or new work
        await self._delete_branch()
        return True

    # --- discard ---

    async def discard(self) -> Settled:
        """Remove the worktree and the branch; save under a ref what would be lost."""
        self._refuse_discard()
        saved = await self._save()
        if self._tree is not None:
            await self._git(self._directory, "worktree", "remove", "--force", str(self._tree.path))
        await self._delete_branch()
        coded = self._coded_text(TextCode.BRANCH_DISCARDED, ref=saved or "")
        return Settled(
            action=TreeAction.DISCARD,
            branch=self._branch,
            text=coded_text(coded),
            coded=coded,
            saved=saved,
            removed=True,
        )

    def _refuse_discard(self) -> None:
        if self._works():
            raise Conflict("running", "an agent is working there; stop it first")
        if self._tree is not None and not self._is_ours():
            text = f"the worktree {_text(self._tree.path)} was not made here; remove it by hand"
            raise Conflict("not_ours", text)

    async def _save(self) -> str | None:
        """Save what only this worktree or branch has; returns the ref, or None for nothing."""
        commits = [commit for commit in (self._tip,) if commit]
        if self._tree is not None:
            commits = [await self._snapshot(self._tree), *commits]
        known = await self._kept_by_others()
        unique: list[str] = []
        for commit in commits:
            if not await self._is_in(commit, [*known, *unique]):
                unique.append(commit)
        if not unique:
            return None
        keep = unique[0]
        if len(unique) > 1:
            parents = [part for commit in unique for part in ("-p", commit)]
            made = await self._git(
                self._directory, "commit-tree", f"{keep}^{{tree}}", *parents,
                env=await self._identity(), stdin=b"State of a discarded worktree\n",
            )  # fmt: skip
            keep = made.text
        # An id at its end: two that are discarded in the same second get different refs.
        ref = f"{DISCARDED}{self._branch}-{time.strftime('%Y%m%d')}-{new_id()[-6:]}"
        await self._git(self._directory, "update-ref", ref, keep, "")
        return ref

    async def _snapshot(self, tree: Tree) -> str:
        """A commit of all files that are not ignored; HEAD itself if nothing else is there."""
        head = tree.head or await self._worktrees.commit_of(str(tree.path), "HEAD")
        if head is None:
            raise Conflict("unborn", f"there is no commit in {_text(tree.path)}")
        await self._refuse_submodules(tree.path)
        async with scratch_index(self._git, tree.path) as env:
            await self._refuse_nested(tree.path, env)
            await self._git(tree.path, "add", "--all", env=env)
            made = (await self._git(tree.path, "write-tree", env=env)).text
        if made == (await self._git(tree.path, "rev-parse", f"{head}^{{tree}}")).text:
            return head
        commit = await self._git(
            tree.path, "commit-tree", made, "-p", head,
            env=await self._identity(), stdin=b"Uncommitted changes of a discarded worktree\n",
        )  # fmt: skip
        return commit.text

    async def _kept_by_others(self) -> list[str]:
        """The tips of all other branches, of tags, of remotes, and of saved work."""
        listed = await self._git(
            self._directory, "for-each-ref", "--format=%(refname) %(objectname)"
        )
        found: list[str] = []
        for line in listed.text.splitlines():
            ref, _, commit = line.partition(" ")
            if ref not in {HEADS + self._branch, BASES + self._branch, "refs/stash"}:
                found.append(commit)
        return found

    async def _is_in(self, commit: str, others: list[str]) -> bool:
        """Whether a commit can be reached from one of the others."""
        if not others:
            return False
        wanted = "\n".join([commit, *(f"^{other}" for other in others)])
        left = await self._git(
            self._directory, "rev-list", "--max-count=1", "--stdin", "--ignore-missing",
            stdin=wanted.encode() + b"\n",
        )  # fmt: skip
        return not left.text

    async def _refuse_nested(self, tree: Path, env: dict[str, str]) -> None:
        """Refuse a repository inside it: only its commit id would be saved."""
        _, nested = await list_untracked(self._git, tree, env)
        if nested:
            text = f"{_text(nested[0])} in {_text(tree)} is a repository of its own: move it first"
            raise Conflict("nested_repository", text)

    async def _refuse_submodules(self, tree: Path) -> None:
        listed = (await self._git(tree, "ls-files", "--stage", "-z")).names
        for entry in listed:
            mode, _, name = entry.partition("\t")
            if mode.startswith(_GITLINK) and await anyio.Path(tree / name / ".git").exists():
                text = f"the submodule {_text(name)} is checked out there: remove it by hand"
                raise Conflict("submodules", text)

    # --- what both need ---

    def _is_ours(self) -> bool:
        """Whether it is in the runner's own folder."""
        assert self._tree is not None
        return self._tree.path.resolve().is_relative_to(self._worktrees.folder.resolve())

    def _works(self) -> bool:
        path = self._tree.path if self._tree is not None else self._place
        return self._is_busy(path.resolve(), self._branch)

    async def _status(self, tree: Path) -> list[str]:
        env = {**await self._git.without_programs(tree), "GIT_OPTIONAL_LOCKS": "0"}
        listed = await self._git(
            tree, "status", "--porcelain=v1", "--no-renames", "--untracked-files=all",
            "--ignore-submodules=dirty", "-z", env=env,
        )  # fmt: skip
        return [entry[3:] for entry in listed.names]

    async def _contains(self, commit: str, older: str) -> bool:
        result = await self._git(
            self._directory, "merge-base", "--is-ancestor", older, commit, good=(0, 1)
        )
        return result.code == 0

    async def _identity(self) -> dict[str, str]:
        return await identity(self._git, self._directory)

    async def _delete_branch(self) -> None:
        """Delete it only at the commit that was seen: a branch that has moved since stays."""
        if self._tip is not None:
            await self._git(self._directory, "update-ref", "-d", HEADS + self._branch, self._tip)
        await self._git(
            self._directory,
            "update-ref",
            "--no-deref",
            "-d",
            BASES + self._branch,
            good=(0, 1, 128),
        )


def _text(path: str | Path) -> str:
    return str(path).encode(errors="surrogateescape").decode(errors="replace")


def _tree_after(*, removed: bool) -> CodedText:
    return CodedText(code=TextCode.WORKTREE_REMOVED if removed else TextCode.WORKTREE_STAYS)
