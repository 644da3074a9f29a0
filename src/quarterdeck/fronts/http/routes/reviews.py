"""The routes of a review: files and their changes, undo, commit, push, pull request, checkpoints.

A person who may read a session may look. One who may steer it may change. The hub journals who did
it.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get, post
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.params import PathParameter, QueryParameter, SkipValidation

from quarterdeck.domain.errors import NotFound
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, SessionId, body_of
from quarterdeck.fronts.http.routes.worktrees import MACHINE_ERRORS, Comparison
from quarterdeck.history.stored_outputs import find_stored_output
from quarterdeck.hub.api import Act, ReviewService, goes_back_in_place, read_checkpoints
from quarterdeck.protocol.machine_requests import (
    Against,
    CommitFiles,
    Entries,
    FileDiff,
    FolderDone,
    Found,
    OpenPullRequest,
    PushBranch,
    RemoteState,
    RevertChange,
    SeenFile,
    StageFiles,
    ToolOutput,
)
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.shapes import (
    CommitBody,
    PullRequestBody,
    PushBody,
    RevertBody,
    StageBody,
)
from quarterdeck.protocol.views import CheckpointList
from quarterdeck.runtime.off_loop import off_loop

AnyConnection = ASGIConnection[Any, Person, Any, Any]
Reviewing = NamedDependency[SkipValidation[ReviewService]]
PathQuery = Annotated[
    str, QueryParameter(description="A file's path", min_length=1, max_length=4096)
]
_HERE = ""
"""Where it is done is set by the hub."""


def _may_steer(connection: AnyConnection, _: BaseRouteHandler) -> None:
    """Before the body is read: who may only look sends nothing here. Raises `Forbidden`."""
    connection.user.need(Right.STEER)


@get("/sessions/{session_id:str}/diff/file", opt=documented(MACHINE_ERRORS))
async def get_file_diff(
    session_id: SessionId,
    reviews: Reviewing,
    path: PathQuery,
    old_path: Annotated[
        str | None, QueryParameter(description="Its name before a renaming", max_length=4096)
    ] = None,
    against: Comparison = "session",
) -> FileDiff:
    """The changes of one file of a session, with all unchanged lines if it is not too long.

    `path` is below the top folder of the repository, as in the list of changes. A file that the
    policy closes is refused.
    """
    return await reviews.file_change(session_id, path, against=Against(against), old_path=old_path)


@get("/sessions/{session_id:str}/files", opt=documented(MACHINE_ERRORS))
async def list_files(
    session_id: SessionId,
    reviews: Reviewing,
    path: Annotated[
        str, QueryParameter(description="Below the session's folder", max_length=4096)
    ] = "",
) -> Entries:
    """What is in a folder of a session's folder. Links are listed and not followed."""
    return await reviews.entries(session_id, path)


@get("/sessions/{session_id:str}/files/content", opt=documented(MACHINE_ERRORS))
async def read_session_file(session_id: SessionId, reviews: Reviewing, path: PathQuery) -> SeenFile:
    """What is in a file of a session's folder, if it is a text of at most 1 MiB.

    A file that the policy closes to the session's agent, or that usually holds secrets, is refused.
    """
    return await reviews.read(session_id, path)


@get(
    "/sessions/{session_id:str}/events/{seq:int}/outputs/{call:str}", opt=documented(MACHINE_ERRORS)
)
async def read_tool_output(
    session_id: SessionId,
    seq: Annotated[
        int, PathParameter(ge=1, le=2**53, description="The number of the result's event")
    ],
    call: Annotated[str, PathParameter(description="The id of the call", max_length=256)],
    hub: Hub,
    reviews: Reviewing,
    offset: Annotated[
        int, QueryParameter(ge=0, le=2**53, description="The first byte: `next` of the part before")
    ] = 0,
) -> ToolOutput:
    """All of a tool's output that the CLI stored in a file, a part at a time.

    The CLI does so when an output is too long for the model. Only a file that the CLI named in this
    event is read, in the folder of the results of its conversation.
    """
    events = await hub.events(session_id, after=seq - 1, limit=1)
    found = None
    if events and events[0].seq == seq:
        json = events[0].json
        found = await off_loop(len(json), find_stored_output, json, call)
    if found is None:
        raise NotFound("stored output of the call", call)
    return await reviews.tool_output(session_id, found.cli_session, found.name, offset=offset)


@get("/sessions/{session_id:str}/files/search", opt=documented(MACHINE_ERRORS))
async def search_files(
    session_id: SessionId,
    reviews: Reviewing,
    text: Annotated[
        str, QueryParameter(description="The text, in any case", min_length=1, max_length=200)
    ],
    contents: Annotated[
        bool, QueryParameter(description="Look into files, and not at their names")
    ] = False,
) -> Found:
    """Where a text is in a session's folder: in names, or in contents. Ignored files are not
    searched.
    """
    return await reviews.find(session_id, text, contents=contents)


@get("/sessions/{session_id:str}/remote", opt=documented(MACHINE_ERRORS))
async def get_remote(session_id: SessionId, reviews: Reviewing) -> RemoteState:
    """Where a push of the session's branch would go, and which commits it would send."""
    return await reviews.remote(session_id)


@post(
    "/sessions/{session_id:str}/revert",
    status_code=200,
    guards=[_may_steer],
    opt=documented(COMMAND_ERRORS, takes=RevertBody),
)
async def revert_change(session_id: SessionId, request: Asking, reviews: Reviewing) -> FolderDone:
    """Undo the change of a file, or some blocks of it. What was there is saved under a ref."""
    wanted = await body_of(request, RevertBody)
    act = RevertChange(
        directory=_HERE,
        path=wanted.path,
        against=wanted.against,
        old_path=wanted.old_path,
        blocks=wanted.blocks,
        digest=wanted.digest,
    )
    return await _act(session_id, request, reviews, act)


@post(
    "/sessions/{session_id:str}/stage",
    status_code=200,
    guards=[_may_steer],
    opt=documented(COMMAND_ERRORS, takes=StageBody),
)
async def stage_files(session_id: SessionId, request: Asking, reviews: Reviewing) -> FolderDone:
    """Add files to the index as they are now, or take them out of it."""
    wanted = await body_of(request, StageBody)
    act = StageFiles(directory=_HERE, paths=wanted.paths, staged=wanted.staged)
    return await _act(session_id, request, reviews, act)


@post(
    "/sessions/{session_id:str}/commit",
    status_code=200,
    guards=[_may_steer],
    opt=documented(COMMAND_ERRORS, takes=CommitBody),
)
async def commit_files(session_id: SessionId, request: Asking, reviews: Reviewing) -> FolderDone:
    """Commit what is staged. It runs no hook and no filter of the repository, and signs nothing."""
    wanted = await body_of(request, CommitBody)
    act = CommitFiles(directory=_HERE, message=wanted.message, all_files=wanted.all_files)
    return await _act(session_id, request, reviews, act)


@post(
    "/sessions/{session_id:str}/push",
    status_code=200,
    guards=[_may_steer],
    opt=documented(COMMAND_ERRORS, takes=PushBody),
)
async def push_branch(session_id: SessionId, request: Asking, reviews: Reviewing) -> FolderDone:
    """Push the session's branch with the login of the machine's user, and never by force.

    It runs no hook and uses no setting of the repository. `url` and `commit` are those of the
    answer for the remote: if one of them has changed, nothing is pushed.
    """
    wanted = await body_of(request, PushBody)
    act = PushBranch(directory=_HERE, url=wanted.url, commit=wanted.commit)
    return await _act(session_id, request, reviews, act)


@post(
    "/sessions/{session_id:str}/pull-request",
    status_code=200,
    guards=[_may_steer],
    opt=documented(COMMAND_ERRORS, takes=PullRequestBody),
)
async def create_pull_request(
    session_id: SessionId, request: Asking, reviews: Reviewing
) -> FolderDone:
    """Open a pull request for the pushed branch, with `gh` or `glab` of the machine."""
    wanted = await body_of(request, PullRequestBody)
    act = OpenPullRequest(
        directory=_HERE,
        url=wanted.url,
        title=wanted.title,
        base=wanted.base,
        body=wanted.body,
        draft=wanted.draft,
    )
    return await _act(session_id, request, reviews, act)


@get("/sessions/{session_id:str}/checkpoints", opt=documented(READ_ERRORS))
async def list_checkpoints(session_id: SessionId, hub: Hub) -> CheckpointList:
    """The prompts of a session as points to go back to, oldest first."""
    view = await hub.session(session_id)
    found = await read_checkpoints(
        lambda after, limit: hub.events(session_id, after=after, limit=limit)
    )
    return CheckpointList(
        checkpoints=found,
        conversation=view.cli_session,
        in_place=goes_back_in_place(view.version),
    )


async def _act(session: str, request: Asking, reviews: ReviewService, act: Act) -> FolderDone:
    return await reviews.act(session, act, by=request.user.name)


HANDLERS = [
    get_file_diff,
    list_files,
    read_session_file,
    read_tool_output,
    search_files,
    get_remote,
    revert_change,
    stage_files,
    commit_files,
    push_branch,
    create_pull_request,
    list_checkpoints,
]
