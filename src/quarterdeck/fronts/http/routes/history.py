"""The routes of the history: search, export, import, retention."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter, SkipValidation
from litestar.response import Stream

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.events import envelope
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, SessionId, body_of
from quarterdeck.fronts.http.routes.worktrees import MachineName
from quarterdeck.history.export import Form
from quarterdeck.history.imports import ImportReport
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.api import CliSessions, HubApi
from quarterdeck.protocol.machine_requests import CliSessionsOnDisk
from quarterdeck.protocol.retention import Plan, Retention, RetentionReport
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.search import LONGEST_QUERY, MOST_HITS, Hits, Search, TextKind
from quarterdeck.protocol.shapes import NewImport, NewRetention

MEGABYTE = 1024 * 1024
LINES = 100
"""Of an export as JSON that are written at once. Others may go on between two pieces."""
MEDIA_TYPES = {
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/x-ndjson",
}
_ENDINGS = {"markdown": "md", "html": "html", "json": "ndjson"}

Disks = NamedDependency[SkipValidation[CliSessions | None]]
Behind = NamedDependency[SkipValidation[HistoryService | None]]
Time = Annotated[int | None, QueryParameter(ge=0, le=2**53, description="In ms since 1970")]


@get("/search", opt=documented(READ_ERRORS))
async def search(
    history_service: Behind,
    q: Annotated[
        str,
        QueryParameter(
            description='Words; "a phrase", a begin*, -without', max_length=LONGEST_QUERY
        ),
    ],
    session: Annotated[
        str | None, QueryParameter(max_length=1000, description="Only this session")
    ] = None,
    project: Annotated[
        str | None, QueryParameter(max_length=1000, description="A project's name, or a path")
    ] = None,
    machine: Annotated[
        str | None, QueryParameter(max_length=1000, description="Only this machine")
    ] = None,
    tool: Annotated[
        str | None, QueryParameter(max_length=1000, description="Only calls of this tool")
    ] = None,
    kind: Annotated[
        Literal["prompt", "answer", "tool"] | None, QueryParameter(description="Only these texts")
    ] = None,
    since: Time = None,
    until: Time = None,
    before: Annotated[
        int | None, QueryParameter(ge=0, le=2**53, description="The `next` of the page before")
    ] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=MOST_HITS, description="The largest number of hits")
    ] = 20,
) -> Hits:
    """Search prompts, answers and tool calls of all sessions, newest first.

    All words must occur. `project` is a project's name, or a folder's path with all below it.
    """
    wanted = Search(
        words=q,
        session=session,
        project=project,
        machine=machine,
        tool=tool,
        kind=None if kind is None else TextKind(kind),
        since=since,
        until=until,
        before=before,
        limit=limit,
    )
    return await _there(history_service).search(wanted)


@get(
    "/sessions/{session_id:str}/export",
    opt=documented(READ_ERRORS, gives_text=tuple(MEDIA_TYPES.values())),
)
async def export_session(
    session_id: SessionId,
    request: Asking,
    hub: Hub,
    history_service: Behind,
    format_: Annotated[
        Literal["markdown", "html", "json"], QueryParameter(name="format", description="As what")
    ] = "markdown",
) -> Stream:
    """A session as a file: Markdown, one page of HTML, or all its events, a JSON object a line."""
    if format_ == "json":
        view = await hub.session(session_id)
        pieces: AsyncIterator[bytes] = _events(hub, session_id, view.head)
    else:
        view, exported = await _there(history_service).export(
            session_id, Form(format_), by=request.user.name
        )
        pieces = _encode_pieces(exported)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", view.name).strip("-.")[:60] or view.session
    return Stream(
        pieces,
        media_type=MEDIA_TYPES[format_],
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{_ENDINGS[format_]}"',
            # If a browser displays it all the same, it has no origin.
            "Content-Security-Policy": "sandbox",
        },
    )


@post(
    "/import",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewImport, body_optional=True),
)
async def import_sessions(request: Asking, history_service: Behind) -> ImportReport:
    """Import sessions that the CLI left on the disk of the hub's machine.

    It is idempotent: only new messages are added.
    """
    request.user.need(Right.MANAGE)
    wanted = await body_of(request, NewImport, empty_is=NewImport())
    return await _there(history_service).import_sessions(
        directory=wanted.directory, only=wanted.sessions, dry_run=wanted.dry_run
    )


@post(
    "/retention",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewRetention, body_optional=True),
)
async def apply_retention(request: Asking, history_service: Behind) -> RetentionReport:
    """List the sessions that exceed the retention limits, or delete them.

    A session that is in use is never deleted.
    """
    request.user.need(Right.MANAGE)
    wanted = await body_of(request, NewRetention, empty_is=NewRetention())
    history = _there(history_service)
    rule = _rule(wanted)
    if wanted.dry_run:
        return _report(await history.plan(rule), dry_run=True)
    if (rule or history.retention).keeps_all:
        raise UsageError("body: a limit is required: days, megabytes")
    return _report(await history.let_go(rule, by=request.user.name), dry_run=False)


def _rule(wanted: NewRetention) -> Retention | None:
    if wanted.days is None and wanted.megabytes is None and not wanted.archived_only:
        return None
    size = None if wanted.megabytes is None else wanted.megabytes * MEGABYTE
    return Retention(days=wanted.days, bytes=size, archived_only=wanted.archived_only)


def _report(plan: Plan, *, dry_run: bool) -> RetentionReport:
    return RetentionReport(
        dry_run=dry_run,
        leaving=plan.leaving,
        freed_bytes=plan.freed,
        sessions=plan.sessions,
        bytes=plan.bytes,
    )


def _there(history: HistoryService | None) -> HistoryService:
    if history is None:
        raise Refused("not_found", "this server has no history")
    return history


async def _encode_pieces(pieces: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece.encode("utf-8", "replace")


async def _events(hub: HubApi, session: str, head: int) -> AsyncIterator[bytes]:
    after = 0
    while after < head and (page := await hub.events(session, after=after)):
        after = page[-1].seq
        for start in range(0, len(page), LINES):
            some = page[start : start + LINES]
            yield b"".join(envelope(stored) + b"\n" for stored in some if stored.seq <= head)


@get("/machines/{machine:str}/sessions", opt=documented((*READ_ERRORS, "conflict", "disconnected")))
async def list_disk_sessions(
    machine: MachineName,
    request: Asking,
    disk_sessions: Disks,
    directory: Annotated[
        str | None,
        QueryParameter(description="Only of the project in this folder", max_length=4096),
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500, description="At most so many")] = 100,
) -> CliSessionsOnDisk:
    """The sessions that the CLI has on a machine's disk, newest first. For owners.

    Those of the hub's machine can be imported. Others are continued by `cli_session` of
    `POST /api/sessions`, with their directory.
    """
    request.user.need(Right.MANAGE)
    if disk_sessions is None:
        raise Refused("not_found", "this server has no machines")
    return await disk_sessions.on_disk(machine, directory=directory, limit=limit)


HANDLERS = [search, export_session, import_sessions, apply_retention, list_disk_sessions]
