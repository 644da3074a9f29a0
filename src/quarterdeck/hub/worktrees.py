"""Where sessions work: projects, what was changed there, and what becomes of their worktrees.

Owns the projects and roots that are in force, and the way from a session to its folder on its
machine. Fronts use it; it sends requests to machines. Git runs on the machine
of the runner; here is no folder that could be looked into.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.closed_files import ClosedFiles
from quarterdeck.hub.decisions.inputs import TreeSettled
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import record
from quarterdeck.protocol.machine_requests import (
    Against,
    Changes,
    Folders,
    PutFile,
    SeeChanges,
    SeeFile,
    SeeFolders,
    SeenFile,
    Settled,
    SettleTree,
    StoredFile,
    TreeAction,
)
from quarterdeck.protocol.projects import HERE, Project, merge_budgets, resolve_spec, with_sandbox
from quarterdeck.protocol.sandbox import SandboxSettings
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND, PROGRAM, Budget, SessionSpec

TEXT_LIMIT = 1024 * 1024


class WorktreeService(Protocol):
    """What a front may ask about the places where sessions work."""

    @property
    def projects(self) -> Mapping[str, Project]:
        """The projects, by name."""

    async def changes(
        self, session: str, *, text_limit: int = TEXT_LIMIT, against: Against = Against.SESSION
    ) -> Changes:
        """What is different in a session's folder."""

    async def settle(
        self,
        session: str,
        action: TreeAction,
        *,
        by: str,
        into: str | None = None,
        message: str | None = None,
        dry_run: bool = False,
    ) -> Settled:
        """Merge, keep or discard a session's worktree; `dry_run` only says what would happen."""

    async def put_file(self, session: str, path: str, data: bytes) -> StoredFile:
        """Store a file in a session's folder."""

    async def see_file(self, session: str, path: str) -> SeenFile:
        """What is in a file of a session's folder now."""

    async def folders(self, machine: str, path: str | None = None) -> Folders:
        """The folders of a machine, below the allowed ones."""


class Worktrees:
    """The worktrees of a hub."""

    def __init__(
        self,
        requests: MachineRequests,
        find: Callable[[str], Awaitable[Session]],
        closed: ClosedFiles,
    ) -> None:
        self._closed = closed
        self._requests = requests
        self._find = find
        self._projects: dict[str, Project] = {}
        self._roots: tuple[str, ...] = ()
        self._budget: Budget | None = None
        self._sandbox: SandboxSettings | None = None

    def change(
        self,
        projects: Mapping[str, Project],
        roots: tuple[str, ...],
        budget: Budget | None = None,
        sandbox: SandboxSettings | None = None,
    ) -> None:
        """Have other projects and roots from now on; sessions that there are stay as they are.

        `budget` and `sandbox` are for sessions that have none of their own, nor of their project.
        """
        self._projects = dict(projects)
        self._roots = roots
        self._budget = budget
        self._sandbox = sandbox

    @property
    def projects(self) -> Mapping[str, Project]:
        """The projects, by name."""
        return self._projects

    def resolve(self, spec: SessionSpec) -> SessionSpec:
        """A new session's spec with all defaults. Raises `NotFound`."""
        spec = with_sandbox(resolve_spec(spec, self._projects), self._sandbox)
        return replace(spec, budget=merge_budgets(spec.budget, self._budget))

    async def changes(
        self, session: str, *, text_limit: int = TEXT_LIMIT, against: Against = Against.SESSION
    ) -> Changes:
        """What is different in a session's folder. The text has no file that the policy closes."""
        view = (await self._find(session)).view
        directory, branch = repository_of(view)
        wanted = SeeChanges(
            directory=directory,
            branch=branch,
            text_limit=text_limit,
            session=session,
            against=against,
        )
        found = await self._requests.run(machine_of(view), wanted, Changes)
        paths = (name for file in found.files for name in (file.path, file.old_path) if name)
        closed = await self._closed.among(view, found.directory, paths)
        if closed and text_limit:
            wanted = replace(wanted, closed=closed)
            found = await self._requests.run(machine_of(view), wanted, Changes)
        return replace(found, closed=closed)

    async def settle(
        self,
        session: str,
        action: TreeAction,
        *,
        by: str,
        into: str | None = None,
        message: str | None = None,
        dry_run: bool = False,
    ) -> Settled:
        """Merge, keep or discard a session's worktree, and journal that.

        `dry_run` only says what would happen.
        """
        found = await self._find(session)
        view = found.view
        branch = view.spec.worktree
        if branch is None:
            raise Conflict("no_worktree", "the session has no worktree of its own")
        if action is TreeAction.DISCARD and found.running:
            raise Conflict("running", "the session has a process; stop it first")
        wanted = SettleTree(
            directory=view.spec.directory,
            branch=branch,
            action=action,
            into=into,
            message=message,
            dry_run=dry_run,
        )
        done = await self._requests.run(machine_of(view), wanted, Settled)
        if dry_run:
            return done
        await record(found, TreeSettled(by=by, branch=branch, done=done))
        return done

    async def put_file(self, session: str, path: str, data: bytes) -> StoredFile:
        """Store a file in a session's folder, where its CLI works or has worked."""
        view = (await self._find(session)).view
        wanted = PutFile(directory=folder_of(view), path=path, data=data)
        return await self._requests.run(machine_of(view), wanted, StoredFile)

    async def see_file(self, session: str, path: str) -> SeenFile:
        """What is in a file of a session's folder now; a path outside of it is not read."""
        view = (await self._find(session)).view
        wanted = SeeFile(directory=folder_of(view), path=path)
        return await self._requests.run(machine_of(view), wanted, SeenFile)

    async def folders(self, machine: str, path: str | None = None) -> Folders:
        """The folders of a machine, below the allowed ones: the roots, and the projects'."""
        roots = self._roots
        if roots:
            own = (
                project.directory
                for project in self._projects.values()
                if (project.machine or HERE) == machine
            )
            roots = tuple(dict.fromkeys([*roots, *own]))
        return await self._requests.run(machine, SeeFolders(path=path, roots=roots), Folders)


def repository_of(view: SessionView) -> tuple[str, str | None]:
    """The folder of a session's repository, and the branch of its worktree if it has one."""
    if view.spec.worktree is not None:
        return view.spec.directory, view.spec.worktree
    return view.directory or view.spec.directory, None


def folder_of(view: SessionView) -> str:
    """Where the session's CLI works or has worked."""
    if view.directory is not None:
        return view.directory
    if view.spec.worktree is not None:
        raise Conflict("no_such_folder", "the session has no folder yet")
    return view.spec.directory


def machine_of(view: SessionView) -> str:
    """The machine of a session's runner. Raises `Conflict` if it has none."""
    if view.machine == INBOUND or view.spec.machine == PROGRAM:
        raise Conflict(
            "no_machine", "its CLI connected to the hub itself: no runner is there to look"
        )
    return view.spec.machine or HERE
