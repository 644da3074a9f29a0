"""The routes of sessions, their prompts and their history: HTTP in, commands and queries out."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, delete, get, patch, post
from litestar.params import PathParameter, QueryParameter
from litestar.response import Stream
from msgspec import UnsetType

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.http.events import page
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, SessionId, body_of, do
from quarterdeck.fronts.http.shapes import (
    ControlRequest,
    EventPage,
    NewFork,
    NewPrompt,
    NewSession,
    PromptChange,
    PromptList,
    SessionChanges,
    SessionPage,
    SessionShape,
    session_shape,
)
from quarterdeck.fronts.http.sse import event_stream, last_event_id, wants_event_stream
from quarterdeck.protocol.commands import (
    ArchiveSession,
    CancelPrompt,
    ChangePrompt,
    ChangeSession,
    Control,
    CreateSession,
    DeleteSession,
    ForkSession,
    Interrupt,
    Outcome,
    RenameSession,
    ResumeSession,
    SendPrompt,
    StopSession,
)

PromptId = Annotated[str, PathParameter(description="A prompt's id", max_length=128, min_length=1)]
Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="How many at most")]
After = Annotated[int, QueryParameter(ge=0, le=2**53, description="The last number known")]


@post("/sessions", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewSession))
async def create_session(request: Asking, hub: Hub) -> Outcome:
    """Make a session and start it.

    With a `session` id of your own, twice is once.
    """
    new = await body_of(request, NewSession)
    command = CreateSession(
        spec=new.spec,
        session=new.session,
        prompt=new.prompt,
        prompt_id=new.prompt_id,
        cli_session=new.cli_session,
    )
    return await do(hub, request.user, command)


@get("/sessions", opt=documented(READ_ERRORS))
async def list_sessions(
    hub: Hub,
    after: Annotated[
        str | None, QueryParameter(description="The last id of the page before", max_length=128)
    ] = None,
    limit: Limit = 100,
    archived: Annotated[bool, QueryParameter(description="Those put away instead")] = False,
) -> SessionPage:
    """Sessions, newest first, a page at a time."""
    views = await hub.sessions(after=after, limit=limit, archived=archived)
    following = views[-1].session if len(views) >= limit else None
    return SessionPage(sessions=tuple(map(session_shape, views)), next=following)


@get("/sessions/{session_id:str}", opt=documented(READ_ERRORS))
async def get_session(session_id: SessionId, hub: Hub) -> SessionShape:
    """One session."""
    return session_shape(await hub.session(session_id))


@patch("/sessions/{session_id:str}", opt=documented(COMMAND_ERRORS, takes=SessionChanges))
async def change_session(session_id: SessionId, request: Asking, hub: Hub) -> SessionShape:
    """Rename a session, put it away or take it out, change its budget or what is auto-approved.

    Several changes at once are made one after the other; the first that fails ends it.
    """
    wanted = await body_of(request, SessionChanges)
    commands = [*_changes(session_id, wanted)]
    if not commands:
        raise UsageError("body: nothing to change")
    for command in commands:
        await do(hub, request.user, command)
    return session_shape(await hub.session(session_id))


@delete("/sessions/{session_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def delete_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """Forget a session and all that was said in it. Its CLI must have ended."""
    return await do(hub, request.user, DeleteSession(session=session_id))


@post("/sessions/{session_id:str}/interrupt", status_code=200, opt=documented(COMMAND_ERRORS))
async def interrupt_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """Stop the running turn. Queued prompts stay queued."""
    return await do(hub, request.user, Interrupt(session=session_id))


@post("/sessions/{session_id:str}/stop", status_code=200, opt=documented(COMMAND_ERRORS))
async def stop_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """End the session's CLI. The session stays, and can be resumed."""
    return await do(hub, request.user, StopSession(session=session_id))


@post("/sessions/{session_id:str}/resume", status_code=200, opt=documented(COMMAND_ERRORS))
async def resume_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """Start a CLI for it again, where the last one ended."""
    return await do(hub, request.user, ResumeSession(session=session_id))


@post(
    "/sessions/{session_id:str}/fork",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewFork, body_optional=True),
)
async def fork_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """Make another session that begins with a copy of this one."""
    fork = await body_of(request, NewFork, empty_is=NewFork())
    command = ForkSession(session=session_id, at=fork.at, name=fork.name)
    return await do(hub, request.user, command)


@post(
    "/sessions/{session_id:str}/control",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=ControlRequest),
)
async def control_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """Send a control request to the session's CLI; its answer is the outcome's `answer`."""
    wanted = await body_of(request, ControlRequest)
    command = Control(session=session_id, request=wanted.request, timeout=wanted.timeout)
    return await do(hub, request.user, command)


# --- prompts -------------------------------------------------------------------------------------


@post(
    "/sessions/{session_id:str}/prompts",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewPrompt),
)
async def send_prompt(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
    """Have something done. It is queued while a turn runs.

    With a `prompt` id of your own, twice is once: send it again when you do not know whether it
    arrived.
    """
    new = await body_of(request, NewPrompt)
    command = SendPrompt(session=session_id, prompt=new.prompt or new_id(), content=new.content)
    return await do(hub, request.user, command)


@get("/sessions/{session_id:str}/prompts", opt=documented(READ_ERRORS))
async def list_prompts(session_id: SessionId, hub: Hub) -> PromptList:
    """The prompts that wait for their turn."""
    return PromptList(prompts=(await hub.session(session_id)).queued)


@patch(
    "/sessions/{session_id:str}/prompts/{prompt_id:str}",
    opt=documented(COMMAND_ERRORS, takes=PromptChange),
)
async def change_prompt(
    session_id: SessionId, prompt_id: PromptId, request: Asking, hub: Hub
) -> Outcome:
    """Have something else done; only while it is queued."""
    wanted = await body_of(request, PromptChange)
    command = ChangePrompt(session=session_id, prompt=prompt_id, content=wanted.content)
    return await do(hub, request.user, command)


@delete(
    "/sessions/{session_id:str}/prompts/{prompt_id:str}",
    status_code=200,
    opt=documented(COMMAND_ERRORS),
)
async def cancel_prompt(
    session_id: SessionId, prompt_id: PromptId, request: Asking, hub: Hub
) -> Outcome:
    """Do not have it done; only while it is queued."""
    return await do(hub, request.user, CancelPrompt(session=session_id, prompt=prompt_id))


# --- history -------------------------------------------------------------------------------------


@get(
    "/sessions/{session_id:str}/events",
    opt=documented(READ_ERRORS, gives=EventPage, also_gives="text/event-stream"),
)
async def list_events(
    session_id: SessionId, request: Asking, hub: Hub, after: After = 0, limit: Limit = 500
) -> Response[bytes] | Stream:
    """A session's history, a page at a time; or, as server-sent events, all of it and what follows.

    With `Accept: text/event-stream` the answer does not end. Each event's id is `EPOCH:SEQ`; a
    `Last-Event-ID` goes on from there and is stronger than `after`. An `event: gap` tells that the
    number means nothing here: begin again from 0.
    """
    view = await hub.session(session_id)
    if wants_event_stream(request):
        start = last_event_id(request, hub.epoch, view.head, after)
        return event_stream(hub, session_id, start)
    events = await hub.events(session_id, after=after, limit=limit)
    following = events[-1].seq if events and events[-1].seq < view.head else None
    return Response(page(hub.epoch, events, following), media_type="application/json")


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
    create_session,
    list_sessions,
    get_session,
    change_session,
    delete_session,
    interrupt_session,
    stop_session,
    resume_session,
    fork_session,
    control_session,
    send_prompt,
    list_prompts,
    change_prompt,
    cancel_prompt,
    list_events,
]
