"""The methods that an editor calls, over one connection. No state of its own but what is open.

Owns the table of methods, and the sessions that the editor has open. Each request is checked by the
types of the protocol first; errors of the hub become errors of JSON-RPC. Sessions outlive the
editor: they belong to the hub.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import anyio
from acp import schema
from acp.meta import AGENT_METHODS, CLIENT_METHODS
from anyio.abc import TaskGroup
from pydantic import BaseModel, ValidationError

from quarterdeck import __version__
from quarterdeck.client import SessionClient, calls
from quarterdeck.domain.errors import LinkClosed, QuarterdeckError
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.acp import rpc
from quarterdeck.fronts.acp.hubs import Hubs, Where, rpc_error
from quarterdeck.fronts.acp.rpc import Connection, Pipe, Reply, RpcError
from quarterdeck.fronts.acp.session_feed import OpenSession
from quarterdeck.fronts.acp.v1 import settings
from quarterdeck.fronts.acp.v1.asks import Request
from quarterdeck.fronts.acp.v1.prompts import content_of, spec_of
from quarterdeck.fronts.acp.v1.settings import Known
from quarterdeck.fronts.acp.v1.updates import Update
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.views import SessionShape

START_SECONDS = 60.0
"""How long a new agent is waited for. What it offers is told later if it takes longer."""
MOST_OPEN = 64
"""Sessions that one editor may have open."""

M = TypeVar("M", bound=BaseModel)
Method = Callable[[object], Awaitable[Reply]]


async def serve(pipe: Pipe, where: Where, defaults: SessionSpec) -> None:
    """Serve an editor until it closes the connection. `defaults` are those of new sessions."""
    async with Hubs(where) as hubs, anyio.create_task_group() as tasks:
        connection = Connection(pipe)
        await connection.serve(Agent(connection, hubs, defaults, tasks), tasks)
        tasks.cancel_scope.cancel()


class Agent:
    """What answers the editor."""

    def __init__(
        self, connection: Connection, hubs: Hubs, defaults: SessionSpec, tasks: TaskGroup
    ) -> None:
        self.forms = False
        """Whether the editor shows forms."""
        self._connection = connection
        self._hubs = hubs
        self._defaults = defaults
        self._tasks = tasks
        self._open: dict[str, OpenSession] = {}
        self._methods: dict[str, Method] = {
            AGENT_METHODS["initialize"]: partial(
                _call_checked, schema.InitializeRequest, self._begin
            ),
            AGENT_METHODS["session_new"]: partial(
                _call_checked, schema.NewSessionRequest, self._new
            ),
            AGENT_METHODS["session_list"]: partial(
                _call_checked, schema.ListSessionsRequest, self._list
            ),
            AGENT_METHODS["session_load"]: partial(
                _call_checked, schema.LoadSessionRequest, self._load
            ),
            AGENT_METHODS["session_resume"]: partial(
                _call_checked, schema.ResumeSessionRequest, self._resume
            ),
            AGENT_METHODS["session_fork"]: partial(
                _call_checked, schema.ForkSessionRequest, self._fork
            ),
            AGENT_METHODS["session_close"]: partial(
                _call_checked, schema.CloseSessionRequest, self._close
            ),
            AGENT_METHODS["session_prompt"]: partial(
                _call_checked, schema.PromptRequest, self._prompt
            ),
            AGENT_METHODS["session_set_mode"]: partial(
                _call_checked, schema.SetSessionModeRequest, self._set_mode
            ),
            AGENT_METHODS["session_set_config_option"]: partial(
                _call_checked, schema.SetSessionConfigOptionSelectRequest, self._set_option
            ),
        }

    # --- from the editor -------------------------------------------------------------------------

    async def request(self, method: str, params: object) -> Reply:
        """Answer a request. Raises `RpcError`."""
        found = self._methods.get(method)
        if found is None:
            raise RpcError(rpc.METHOD_NOT_FOUND, "there is no such method", {"method": method})
        try:
            return await found(params)
        except QuarterdeckError as error:
            raise rpc_error(error) from error

    async def notification(self, method: str, params: object) -> None:
        """Take a notification; those that are unknown mean nothing."""
        if method != AGENT_METHODS["session_cancel"]:
            return
        try:
            session = schema.CancelNotification.model_validate(params).session_id
        except ValidationError:
            return
        if (found := self._open.get(session)) is not None:
            self._tasks.start_soon(found.cancel)

    # --- to the editor ---------------------------------------------------------------------------

    async def update(self, session: str, update: Update) -> bool:
        """Tell it something; False if it is gone."""
        params = {"sessionId": session, "update": _json(update)}
        try:
            await self._connection.notify(CLIENT_METHODS["session_update"], params)
        except LinkClosed:
            return False
        return True

    async def ask(self, request: Request) -> object:
        """Ask it something. Raises `RpcError`."""
        name = (
            "session_request_permission"
            if isinstance(request, schema.RequestPermissionRequest)
            else "elicitation_create"
        )
        try:
            return await self._connection.request(CLIENT_METHODS[name], _json(request))
        except LinkClosed as error:
            raise RpcError(rpc.INTERNAL_ERROR, str(error)) from error

    # --- the methods -----------------------------------------------------------------------------

    async def _begin(self, request: schema.InitializeRequest) -> Reply:
        self.forms = settings.has_forms(request.client_capabilities)
        return Reply(result=_json(settings.initialize_response(__version__)))

    async def _new(self, request: schema.NewSessionRequest) -> Reply:
        self._check_room()
        spec = spec_of(
            self._defaults, request.cwd, request.additional_directories, request.mcp_servers
        )
        client = await self._hubs.client()
        made = await client.create(spec, session=new_id())
        opened = await self._open_session(await _wait_for_start(made), after=0)
        return self._reply(opened, schema.NewSessionResponse(session_id=made.id))

    async def _list(self, request: schema.ListSessionsRequest) -> Reply:
        client = await self._hubs.client()
        page = await client.call(calls.sessions(request.cursor))
        found = [
            settings.session_info(shape)
            for shape in page.sessions
            if request.cwd is None or settings.is_in(shape, request.cwd)
        ]
        return Reply(
            result=_json(schema.ListSessionsResponse(sessions=found, next_cursor=page.next))
        )

    async def _load(self, request: schema.LoadSessionRequest) -> Reply:
        self._check_room()
        session = (await self._hubs.client()).session(request.session_id)
        opened = await self._open_session(await session.read())
        await opened.replay()
        return self._reply(opened, schema.LoadSessionResponse())

    async def _resume(self, request: schema.ResumeSessionRequest) -> Reply:
        self._check_room()
        session = (await self._hubs.client()).session(request.session_id)
        shape = await session.read()
        if shape.run is None:
            await session.resume()
            shape = await _wait_for_start(session)
        return self._reply(await self._open_session(shape), schema.ResumeSessionResponse())

    async def _fork(self, request: schema.ForkSessionRequest) -> Reply:
        self._check_room()
        client = await self._hubs.client()
        made = await client.session(request.session_id).fork()
        opened = await self._open_session(await _wait_for_start(made))
        return self._reply(opened, schema.ForkSessionResponse(session_id=made.id))

    async def _close(self, request: schema.CloseSessionRequest) -> Reply:
        self._find(request.session_id).close()
        return Reply(result=_json(schema.CloseSessionResponse()))

    async def _prompt(self, request: schema.PromptRequest) -> Reply:
        session = self._find(request.session_id)
        return Reply(result=_json(await session.prompt(content_of(request.prompt))))

    async def _set_mode(self, request: schema.SetSessionModeRequest) -> Reply:
        await self._switch(request.session_id, settings.MODE, request.mode_id)
        return Reply(result=_json(schema.SetSessionModeResponse()))

    async def _set_option(self, request: schema.SetSessionConfigOptionSelectRequest) -> Reply:
        session = await self._switch(request.session_id, request.config_id, request.value)
        response = schema.SetSessionConfigOptionResponse(config_options=[])
        response.config_options = [*settings.config_options(session.known)]
        return Reply(result=_json(response))

    # --- inside ----------------------------------------------------------------------------------

    async def _switch(self, id_: str, option: str, value: str) -> OpenSession:
        found = self._find(id_)
        request = settings.control_for(found.known, option, value)
        session = (await self._hubs.client()).session(id_)
        await session.control(request)
        found.known.shape = settings.with_switch(await session.read(), option, value)
        return found

    def _find(self, id_: str) -> OpenSession:
        found = self._open.get(id_)
        if found is None:
            text = "the session is not open here: load it, or resume it"
            raise RpcError(rpc.NOT_FOUND, text, {"sessionId": id_})
        return found

    def _check_room(self) -> None:
        if len(self._open) >= MOST_OPEN:
            raise RpcError(rpc.INTERNAL_ERROR, f"{MOST_OPEN} sessions are open: close one first")

    async def _open_session(self, shape: SessionShape, *, after: int | None = None) -> OpenSession:
        known = Known(shape, await self._hubs.me())
        return OpenSession(self, self._hubs, known, shape.head if after is None else after)

    def _reply(
        self,
        opened: OpenSession,
        response: schema.NewSessionResponse
        | schema.LoadSessionResponse
        | schema.ResumeSessionResponse
        | schema.ForkSessionResponse,
    ) -> Reply:
        """The answer with what can be chosen. Following begins once the editor knows the id."""
        response.modes = settings.modes(opened.known)
        response.config_options = list(settings.config_options(opened.known))
        if (before := self._open.pop(opened.id, None)) is not None:
            before.close()
        self._open[opened.id] = opened
        return Reply(result=_json(response), after=partial(opened.run, self._forget_session))

    def _forget_session(self, session: OpenSession) -> None:
        if self._open.get(session.id) is session:
            del self._open[session.id]


async def _call_checked(
    model: type[M], method: Callable[[M], Awaitable[Reply]], params: object
) -> Reply:
    """Call a method with its parameters. Raises `RpcError` for what does not fit."""
    try:
        given = model.model_validate(params)
    except ValidationError as error:
        # Without the input: a prompt may be large, or secret.
        found = error.errors(include_url=False, include_input=False, include_context=False)
        rows = [{"at": list(row["loc"]), "error": row["msg"]} for row in found[:10]]
        text = "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in found[:3])
        raise RpcError(rpc.INVALID_PARAMS, text or "invalid parameters", rows) from None
    return await method(given)


async def _wait_for_start(session: SessionClient) -> SessionShape:
    """The session when its agent is there. Raises `RpcError` if it ended at once."""
    async with session:
        with anyio.move_on_after(START_SECONDS):
            await session.wait_for(lambda view: view.state is not SessionState.STARTING)
        shape = await session.read()
    if shape.run is None:
        text = f"the agent did not start: {shape.detail}"
        raise RpcError(rpc.INTERNAL_ERROR, text, {"sessionId": shape.session})
    return shape


def _json(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
