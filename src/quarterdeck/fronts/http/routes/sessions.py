"""The routes that read sessions, their prompts and their history, and the one that changes them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, get, patch
from litestar.params import PathParameter, QueryParameter
from litestar.response import Stream
from msgspec import UnsetType

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.fronts.http.events import latest, page
from quarterdeck.fronts.http.masks import masked_json
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.pictures import SHOWN, find_picture
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, SessionId, body_of, do
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.fronts.http.sse import event_stream, last_event_id, wants_event_stream
from quarterdeck.protocol.command_table import REPEATED_HEADER
from quarterdeck.protocol.commands import (
    ArchiveSession,
    ChangeSession,
    RenameSession,
)
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.shapes import (
    EventPage,
    LatestEvents,
    PromptList,
    SessionChanges,
    SessionPage,
)
from quarterdeck.protocol.stored_events import stored_size
from quarterdeck.protocol.views import SessionShape
from quarterdeck.runtime.off_loop import off_loop

Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="The largest number of entries")]
_PICTURE_HEADERS = {
    # Named after its contents. A page shows it as a picture; opened alone, it can do nothing.
    "cache-control": "private, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; sandbox",
    "content-disposition": "inline",
}
After = Annotated[int, QueryParameter(ge=0, le=2**53, description="The last number that you have")]


@get("/sessions", opt=documented(READ_ERRORS))
async def list_sessions(
    hub: Hub,
    after: Annotated[
        str | None, QueryParameter(description="The last id of the page before", max_length=128)
    ] = None,
    limit: Limit = 100,
    archived: Annotated[
        bool, QueryParameter(description="List the archived sessions instead")
    ] = False,
) -> SessionPage:
    """Sessions, newest first, a page at a time."""
    views = await hub.sessions(after=after, limit=limit, archived=archived)
    following = views[-1].session if len(views) >= limit else None
    return SessionPage(sessions=tuple(map(session_shape, views)), next=following)


@get("/sessions/{session_id:str}", opt=documented(READ_ERRORS))
async def get_session(session_id: SessionId, hub: Hub) -> SessionShape:
    """One session."""
    return session_shape(await hub.session(session_id), offers=True)


@patch("/sessions/{session_id:str}", opt=documented(COMMAND_ERRORS, takes=SessionChanges))
async def change_session(
    session_id: SessionId, request: Asking, hub: Hub
) -> Response[SessionShape]:
    """Rename or archive a session, change its budget or what is auto-approved.

    Several changes are made one after the other, up to the first that fails. The header
    `Quarterdeck-Repeated` says that each was made before, and that nothing was done again.
    """
    request.user.need(Right.STEER)  # the least of them needs it, and the body may be large
    wanted = await body_of(request, SessionChanges)
    commands = [*_changes(session_id, wanted)]
    if not commands:
        raise UsageError("body: nothing to change")
    outcomes = [await do(hub, request.user, command) for command in commands]
    shape = session_shape(await hub.session(session_id), offers=True)
    repeated = all(outcome.repeated for outcome in outcomes)
    return Response(shape, headers={REPEATED_HEADER: "true"} if repeated else {})


# --- prompts -------------------------------------------------------------------------------------


@get("/sessions/{session_id:str}/prompts", opt=documented(READ_ERRORS))
async def list_prompts(session_id: SessionId, hub: Hub) -> PromptList:
    """The queued prompts."""
    return PromptList(prompts=(await hub.session(session_id)).queued)


# --- history -------------------------------------------------------------------------------------


@get(
    "/sessions/{session_id:str}/events",
    opt=documented(READ_ERRORS, gives=EventPage, also_gives="text/event-stream"),
)
async def list_events(
    session_id: SessionId,
    request: Asking,
    hub: Hub,
    after: After = 0,
    limit: Limit = 500,
    pictures: Annotated[
        bool,
        QueryParameter(
            description="False: pictures and documents have a path in `url` instead of their data"
        ),
    ] = True,
) -> Response[bytes] | Stream:
    """A session's history, a page at a time; or all of it and new events as server-sent events.

    With `Accept: text/event-stream` the answer does not end. Each event's id is `EPOCH:SEQ`; a
    `Last-Event-ID` resumes from there and has precedence over `after`. An `event: gap` means that
    the number is not valid here: start again from 0.
    """
    view = await hub.session(session_id)
    if wants_event_stream(request):
        start = last_event_id(request, hub.epoch, view.head, after)
        return event_stream(hub, session_id, start)
    events = await hub.events(session_id, after=after, limit=limit)
    following = events[-1].seq if events and events[-1].seq < view.head else None
    data = await page(hub.epoch, events, following, pictures=pictures)
    return Response(data, media_type="application/json")


@get("/sessions/{session_id:str}/latest", opt=documented(READ_ERRORS, gives=LatestEvents))
async def get_latest(session_id: SessionId, hub: Hub, limit: Limit = 200) -> Response[bytes]:
    """A session with its last events, in one answer. Pictures and documents have paths in `url`."""
    view = await hub.session(session_id)
    events = await hub.events(session_id, after=max(0, view.head - limit), limit=limit)
    shape = msgspec.json.encode(session_shape(view, offers=True))
    data = await latest(hub.epoch, shape, events)
    return Response(data, media_type="application/json")


@get(
    "/sessions/{session_id:str}/events/{seq:int}/pictures/{digest:str}",
    opt=documented(READ_ERRORS, gives_text=tuple(sorted(SHOWN))),
)
async def get_picture(
    session_id: SessionId,
    seq: Annotated[int, PathParameter(ge=1, le=2**53, description="The number of its event")],
    digest: Annotated[str, PathParameter(max_length=64, description="As in its path")],
    hub: Hub,
) -> Response[bytes]:
    """A picture or document of an event, as bytes. What is behind such a path never changes."""
    events = await hub.events(session_id, after=seq - 1, limit=1)
    found = None
    if events and events[0].seq == seq:
        stored = events[0]
        size = stored_size(stored)
        found = await off_loop(size, lambda: find_picture(masked_json(stored), digest))
    if found is None:
        raise NotFound("picture", digest)
    return Response(found.body, media_type=found.kind, headers=_PICTURE_HEADERS)


def _changes(
    session: str, wanted: SessionChanges
) -> list[RenameSession | ArchiveSession | ChangeSession]:
    commands: list[RenameSession | ArchiveSession | ChangeSession] = []
    if isinstance(wanted.name, str):
        commands.append(RenameSession(session=session, name=wanted.name))
    approve = None if isinstance(wanted.auto_approve, UnsetType) else wanted.auto_approve
    timeout = None if isinstance(wanted.ask_timeout, UnsetType) else wanted.ask_timeout
    budget = None if isinstance(wanted.budget, UnsetType) else wanted.budget
    if approve is not None or timeout is not None or budget is not None:
        commands.append(
            ChangeSession(session=session, auto_approve=approve, ask_timeout=timeout, budget=budget)
        )
    if isinstance(wanted.archived, bool):
        commands.append(ArchiveSession(session=session, archived=wanted.archived))
    return commands


HANDLERS = [
    list_sessions,
    get_session,
    change_session,
    list_prompts,
    list_events,
    get_latest,
    get_picture,
]
