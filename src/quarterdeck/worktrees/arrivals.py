"""The folder of a session that comes from another machine.

Owns that its branch is the one it worked on: a branch of this machine, brought up to date from the
remote, or one that is fetched from there. A missing branch is never made anew. It is fetched
through an empty repository, so that settings which an agent can write have no effect. `requests` is
above; git is below.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.machine_requests import OpenedPlace, OpenPlace
from quarterdeck.worktrees.publish import allowed_protocols, clean_repository
from quarterdeck.worktrees.remotes import PROBLEM_TEXTS, Address, address_of
from quarterdeck.worktrees.worktrees import HEADS, Worktrees


class _Source(Value):
    """A remote of the repository."""

    name: str
    url: str
    address: Address


async def open_place(wanted: OpenPlace, worktrees: Worktrees) -> OpenedPlace:
    """The folder, with its branch if it has one. Raises `Conflict` or `LaunchError`."""
    branch = wanted.branch
    if branch is None:
        return OpenedPlace(directory=wanted.directory)
    await worktrees.check_name(wanted.directory, branch)
    reason = await _update(worktrees, wanted.directory, branch)
    folder = await worktrees.open(wanted.directory, branch)
    text = "" if reason is None else coded_text(reason)
    return OpenedPlace(directory=str(folder), text=text, coded=reason)


async def _update(worktrees: Worktrees, directory: str, branch: str) -> CodedText | None:
    """Have the branch as new as the remote has it; gives what a person should know."""
    async with worktrees.lock(directory) as common:
        here = await worktrees.commit_of(directory, HEADS + branch)
        source = await _source(worktrees, directory)
        there, problem = None, ""
        if source is not None:
            there, problem = await _fetch(worktrees, directory, common, branch, source)
        if there is None and here is None:
            raise Conflict(
                "branch_not_here",
                f"the branch {branch!r} is not on this machine, and was not fetched:"
                f" {problem or 'the repository has no remote'}."
                " Push it from a machine that has it, or fetch it here",
            )
        if there is None:
            return CodedText(code=TextCode.BRANCH_AS_HERE, name=branch, detail=problem)
        if here is None:
            await worktrees.git(directory, "update-ref", HEADS + branch, there, "")
            return None
        return await _forward(worktrees, directory, branch, here, there)


async def _forward(
    worktrees: Worktrees, directory: str, branch: str, here: str, there: str
) -> CodedText | None:
    """Move a branch forward to the remote's commit, if nothing of this machine is lost by it."""
    if here == there or await _is_before(worktrees, directory, there, here):
        return None
    commits = CodedText(
        code=TextCode.BRANCH_DIVERGED, name=branch, commit=here[:12], ref=there[:12]
    )
    if not await _is_before(worktrees, directory, here, there):
        return commits
    tree = await worktrees.find(directory, branch)
    if tree is None:
        await worktrees.git(directory, "update-ref", HEADS + branch, there, here)
        return None
    try:
        env = await worktrees.git.without_programs(tree.path)
        await worktrees.git(tree.path, "merge", "--ff-only", "--quiet", there, env=env)
    except LaunchError as error:
        return replace(commits, code=TextCode.BRANCH_BEHIND, detail=str(error))
    return None


async def _is_before(worktrees: Worktrees, directory: str, one: str, other: str) -> bool:
    found = await worktrees.git(
        directory, "merge-base", "--is-ancestor", one, other, good=(0, 1, 128)
    )
    return found.code == 0


async def _source(worktrees: Worktrees, directory: str) -> _Source | None:
    """The remote `origin`, or the only one."""
    git = worktrees.git
    names = (await git(directory, "remote")).text.splitlines()
    name = "origin" if "origin" in names else names[0] if len(names) == 1 else ""
    if not name:
        return None
    found = await git(
        directory, "config", "--get-all", "--end-of-options", f"remote.{name}.url", good=(0, 1, 128)
    )
    url = found.text.split("\n")[-1] if found.code == 0 else ""
    if url.startswith(("./", "../")):
        url = str((Path(directory) / url).resolve())
    return _Source(name=name, url=url, address=address_of(url)) if url else None


async def _fetch(
    worktrees: Worktrees, directory: str, common: str, branch: str, source: _Source
) -> tuple[str | None, str]:
    """The remote's commit of a branch, with its objects; else None and the reason."""
    if source.address.problem is not None:
        text = PROBLEM_TEXTS[source.address.problem]
        return None, f"the remote {source.address.shown}: {text}"
    git = worktrees.git
    async with clean_repository(worktrees, directory) as place:
        env = {**allowed_protocols(), "GIT_OBJECT_DIRECTORY": str(Path(common) / "objects")}
        try:
            await git(
                place, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
                "--no-write-fetch-head", "--", source.url, f"{HEADS}{branch}:{HEADS}{branch}",
                env=env,
            )  # fmt: skip
            found = await git(
                place, "rev-parse", "--verify", f"{HEADS}{branch}^{{commit}}", env=env
            )
        except LaunchError as error:
            words = str(error).replace(source.url, source.address.shown)
            return None, f"the remote {source.address.shown}: {words}"
    return found.text, ""
