"""Reviewing the work of a session: its files and their changes, and what a person does with them.

Owns who is named for a change, and its event. Fronts are above, through `ReviewService`; machine
requests and the policy's closed files are below. Nothing here may be done by an agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, Forbidden
from quarterdeck.hub.closed_files import ClosedFiles
from quarterdeck.hub.decisions.inputs import FolderActed
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import record
from quarterdeck.hub.worktrees import folder_of, machine_of, repository_of
from quarterdeck.protocol.machine_requests import (
    Against,
    CommitFiles,
    Entries,
    FileDiff,
    FindInFiles,
    FolderDone,
    Found,
    OpenPullRequest,
    PushBranch,
    RemoteState,
    RevertChange,
    SeeEntries,
    SeeFile,
    SeeFileChange,
    SeenFile,
    SeeRemote,
    SeeToolOutput,
    StageFiles,
    ToolOutput,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import is_agent
from quarterdeck.transcripts.layout import config_dir_of

Act = RevertChange | StageFiles | CommitFiles | PushBranch | OpenPullRequest


class ReviewService(Protocol):
    """What a front may ask about the work in a session's folder."""

    async def file_change(
        self, session: str, path: str, *, against: Against, old_path: str | None = None
    ) -> FileDiff:
        """The diff of one file."""

    async def remote(self, session: str) -> RemoteState:
        """Where a push would go."""

    async def entries(self, session: str, path: str) -> Entries:
        """What is in a folder."""

    async def read(self, session: str, path: str) -> SeenFile:
        """What is in a file."""

    async def tool_output(
        self, session: str, cli_session: str, name: str, *, offset: int = 0
    ) -> ToolOutput:
        """Output that the CLI stored in a file."""

    async def find(self, session: str, text: str, *, contents: bool) -> Found:
        """Where a text is."""

    async def act(self, session: str, act: Act, *, by: str) -> FolderDone:
        """Do something to the folder. Its members for the place are set here."""


class Reviews:
    """The reviews of a hub."""

    def __init__(
        self,
        requests: MachineRequests,
        find: Callable[[str], Awaitable[Session]],
        closed: ClosedFiles,
    ) -> None:
        self._requests = requests
        self._find = find
        self._closed = closed

    async def file_change(
        self, session: str, path: str, *, against: Against, old_path: str | None = None
    ) -> FileDiff:
        """The diff of one file. Raises `Conflict` if the policy closes it."""
        view = (await self._find(session)).view
        directory, branch = repository_of(view)
        names = [path] if old_path is None else [path, old_path]
        await self._refuse_closed(view, names)
        wanted = SeeFileChange(
            directory=directory,
            branch=branch,
            session=session,
            path=path,
            old_path=old_path,
            against=against,
        )
        found = await self._requests.run(machine_of(view), wanted, FileDiff)
        if found.directory != folder_of(view):
            await self._refuse_closed(view, [f"{found.directory}/{name}" for name in names])
        return found

    async def remote(self, session: str) -> RemoteState:
        """Where a push of the session's branch would go."""
        view = (await self._find(session)).view
        directory, branch = repository_of(view)
        wanted = SeeRemote(directory=directory, branch=branch)
        return await self._requests.run(machine_of(view), wanted, RemoteState)

    async def entries(self, session: str, path: str) -> Entries:
        """What is in a folder of the session's folder."""
        view = (await self._find(session)).view
        wanted = SeeEntries(directory=folder_of(view), path=path)
        return await self._requests.run(machine_of(view), wanted, Entries)

    async def read(self, session: str, path: str) -> SeenFile:
        """What is in a file of the session's folder. Raises `Conflict` if the policy closes it."""
        view = (await self._find(session)).view
        await self._refuse_closed(view, [path])
        wanted = SeeFile(directory=folder_of(view), path=path)
        seen = await self._requests.run(machine_of(view), wanted, SeenFile)
        # By its real path too: a folder on the way may be a link.
        await self._refuse_closed(view, [seen.path])
        return seen

    async def tool_output(
        self, session: str, cli_session: str, name: str, *, offset: int = 0
    ) -> ToolOutput:
        """A part of an output that the session's CLI stored in a file of its own."""
        view = (await self._find(session)).view
        wanted = SeeToolOutput(
            directory=folder_of(view),
            cli_session=cli_session,
            name=name,
            offset=offset,
            config=config_dir_of(view.spec.env),
        )
        return await self._requests.run(machine_of(view), wanted, ToolOutput)

    async def find(self, session: str, text: str, *, contents: bool) -> Found:
        """Where a text is in the session's folder; lines of closed files are left out."""
        view = (await self._find(session)).view
        wanted = FindInFiles(directory=folder_of(view), text=text, contents=contents)
        found = await self._requests.run(machine_of(view), wanted, Found)
        if not contents:
            return found
        paths = dict.fromkeys(match.path for match in found.matches)
        closed = set(await self._closed.among(view, folder_of(view), paths))
        kept = tuple(match for match in found.matches if match.path not in closed)
        return replace(found, matches=kept)

    async def act(self, session: str, act: Act, *, by: str) -> FolderDone:
        """Do it, and journal who did it. Raises `Forbidden` for an agent."""
        if is_agent(by):
            raise Forbidden("agents do not review work: a person does")
        found = await self._find(session)
        directory, branch = repository_of(found.view)
        placed = replace(act, directory=directory, branch=branch)
        if isinstance(placed, RevertChange):
            placed = replace(placed, session=session)
        done = await self._requests.run(machine_of(found.view), placed, FolderDone)
        await record(found, FolderActed(by=by, action=_action(act), done=done))
        return done

    async def _refuse_closed(self, view: SessionView, paths: list[str]) -> None:
        if closed := await self._closed.among(view, folder_of(view), paths):
            text = f"{closed[0]!r} is closed by the policy: it may hold secrets"
            raise Conflict("closed_by_policy", text)


def _action(act: Act) -> str:
    match act:
        case RevertChange():
            return "revert"
        case StageFiles(staged=staged):
            return "stage" if staged else "unstage"
        case CommitFiles():
            return "commit"
        case PushBranch():
            return "push"
        case OpenPullRequest():
            return "pull_request"
