"""The routes of where sessions work: their changes, their worktrees, folders, projects."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, SkipValidation

from quarterdeck.fronts.http.masks import MASK
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.routes.handlers import Asking, SessionId, body_of
from quarterdeck.hub.api import TEXT_LIMIT, WorktreeService
from quarterdeck.protocol.machine_requests import (
    Against,
    Changes,
    Folders,
    Settled,
    StoredFile,
)
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.shapes import NewFile, ProjectList, ProjectShape, WorktreeAction

Worktrees = NamedDependency[SkipValidation[WorktreeService]]
FILE_BODY = 32 * 1024 * 1024 + 64 * 1024
"""A file of 24 MiB in base 64, and its path."""
MACHINE_ERRORS = (*READ_ERRORS, "conflict", "disconnected")

Comparison = Annotated[
    Literal["session", "head"],
    QueryParameter(description="What it is compared to: the session's start, or the last commit"),
]
MachineName = Annotated[
    str, PathParameter(description="A machine's name", max_length=128, min_length=1)
]


@get("/projects", opt=documented(READ_ERRORS))
async def list_projects(worktree_service: Worktrees) -> ProjectList:
    """The projects of the configuration: their directories, and what holds for their sessions."""
    return ProjectList(
        projects=tuple(
            ProjectShape(name=name, defaults=_mask_project(project))
            for name, project in sorted(worktree_service.projects.items())
        )
    )


@get("/sessions/{session_id:str}/diff", opt=documented(MACHINE_ERRORS))
async def get_diff(
    session_id: SessionId,
    worktree_service: Worktrees,
    text_limit: Annotated[
        int, QueryParameter(ge=0, le=8 * TEXT_LIMIT, description="Bytes of the diff's text at most")
    ] = TEXT_LIMIT,
    against: Comparison = "session",
) -> Changes:
    """What a session has changed: files, lines, and the text of the diff.

    In a worktree it is compared to where its branch left its base, else to the start of the
    session, or to the last commit if its machine has no snapshot of that. What shell commands have
    changed, what is not committed, and files that are new, are in it. Files that the policy closes
    are listed, and are not in the text.
    """
    return await worktree_service.changes(
        session_id, text_limit=text_limit, against=Against(against)
    )


@post(
    "/sessions/{session_id:str}/worktree",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=WorktreeAction),
)
async def settle_worktree(
    session_id: SessionId, request: Asking, worktree_service: Worktrees
) -> Settled:
    """Merge a session's worktree into its base, keep it, or discard it.

    A merge that cannot be made leaves everything as it was. What is discarded and is nowhere else
    is saved first; `saved` is the ref under which it is found again.
    """
    person = request.user
    person.need(Right.MANAGE)
    wanted = await body_of(request, WorktreeAction)
    return await worktree_service.settle(
        session_id,
        wanted.action,
        by=person.name,
        into=wanted.into,
        message=wanted.message,
        dry_run=wanted.dry_run,
    )


@post(
    "/sessions/{session_id:str}/files",
    status_code=200,
    request_max_body_size=FILE_BODY,
    opt=documented(COMMAND_ERRORS, takes=NewFile),
)
async def put_file(
    session_id: SessionId, request: Asking, worktree_service: Worktrees
) -> StoredFile:
    """Store a file in a session's folder. A file that is there is not replaced."""
    request.user.need(Right.MANAGE)
    wanted = await body_of(request, NewFile)
    return await worktree_service.put_file(session_id, wanted.path, wanted.data)


@get("/machines/{machine:str}/directories", opt=documented(MACHINE_ERRORS))
async def list_directories(
    machine: MachineName,
    request: Asking,
    worktree_service: Worktrees,
    path: Annotated[
        str | None,
        QueryParameter(
            description="The folder to look into; the roots if left out", max_length=4096
        ),
    ] = None,
) -> Folders:
    """The folders of a machine that can be worked in, below those that the configuration allows."""
    request.user.need(Right.MANAGE)
    return await worktree_service.folders(machine, path)


def _mask_project(project: Project) -> Project:
    return msgspec.structs.replace(project, env=dict.fromkeys(project.env, MASK))


HANDLERS = [list_projects, get_diff, settle_worktree, put_file, list_directories]
