"""The hub as an MCP server at `/mcp`, for the agents of its own runs, and for people.

Owns the way of a call. A person, whom the gate has found by their token, has the tools of their
role (see `people`), as far as the rules for all sessions let them pass (see `policy`). For an
agent, the token of the connection names the caller, the rules of the caller's session are asked
once more, and the call must be one that the session's CLI has announced and was let make: see
`announced`. So a token that an agent reads from its own files is worth no more than the tools that
it was given. What was let pass, and what was refused, is in the audit log; of calls that only read,
and of refused ones, so many in an hour.

The official `mcp` package speaks the protocol; it takes a second to import, and is imported when
the first caller comes. `tools` is below, the gate of `fronts.http` and the service are above.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.domain.errors import Conflict, Forbidden, NotFound, QuarterdeckError, UsageError
from quarterdeck.fronts.mcp import tools
from quarterdeck.fronts.mcp.people import TOOLS as PEOPLE_TOOLS
from quarterdeck.fronts.mcp.people import PeopleTools, Visitor, tools_for
from quarterdeck.fronts.mcp.policy import RecentEntries, RefusedCalls, check_person, entry
from quarterdeck.fronts.mcp.seen_calls import cli_allows, look
from quarterdeck.fronts.mcp.tools import AgentHub, AgentTools, Arguments
from quarterdeck.hub.api import Behavior, Rules, Verdict, own_work, rule_on_agent, rule_on_person
from quarterdeck.protocol.events import Event
from quarterdeck.protocol.holds import RunningTool
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import agent_name
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.wire.tools import one_line

if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus
    from mcp.server.lowlevel.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

NAME = "quarterdeck"
PREFIX = f"mcp__{NAME}__"
"""The names of the tools, as the CLI and the rules know them."""
AT_ONCE = 8
"""Calls of one session that are under way at the same time."""
SERVED = 10_000
"""Calls that are remembered as served."""
LOOKED_AT = 2000
"""Events of a session that are read at once, from its end, to find an announced call."""
LONGEST_NAME = 100
REFUSALS = (Forbidden, NotFound, Conflict, UsageError)
"""With these the hub refuses what a tool asks for."""
LARGEST_BODY = 1024 * 1024
_CALLER = "quarterdeck.agent"
_CALL_ID = "claudecode/toolUseId"
"""Where newer CLIs name the tool call that they make."""

TOOLS: dict[str, type[Arguments]] = {
    "list_sessions": tools.ListSessions,
    "spawn": tools.Spawn,
    "send": tools.Send,
    "wait": tools.Wait,
    "read": tools.Read,
    "changes": tools.GetChanges,
    "interrupt": tools.Interrupt,
    "stop": tools.Stop,
    "search": tools.SearchText,
}
"""There is no `answer`: questions are for people."""
_READING = frozenset({"list_sessions", "wait", "read", "changes", "search"})


Forwarder = Callable[[str, Scope, Receive, Send], Awaitable[bool]]
"""Have another hub answer the agent with this token; False if no other hub has it."""


async def _nowhere(token: str, scope: Scope, receive: Receive, send: Send) -> bool:  # noqa: ARG001
    return False


class McpEndpoint:
    """An ASGI app. It serves while `running` does."""

    def __init__(
        self,
        hub: AgentHub,
        agent_tools: AgentTools,
        rules: Callable[[SessionView], Rules],
        *,
        people: PeopleTools | None = None,
        visitor_of: Callable[[Scope], Visitor | None] = lambda _: None,
        rules_for_people: Callable[[], Rules] = Rules,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`rules` gives those of an agent's session. `visitor_of` gives the person of a request, if
        its token is a person's.
        """
        self._hub = hub
        self._people = people
        self._visitor_of = visitor_of
        self._tools = agent_tools
        self._rules = rules
        self._rules_for_people = rules_for_people
        self._now = now
        self._refused = RefusedCalls()
        self._noted, self._read = RecentEntries(), RecentEntries()
        self._numbers = count()
        self._tasks: TaskGroup | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = anyio.Lock()
        self._served: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._under_way: dict[str, int] = {}
        self.forward: Forwarder = _nowhere
        """With several hubs: has the one answer that has the agent's session."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        async with background_tasks() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or self._tasks is None:
            await _refuse(send, 404, "not_found")
            return
        agent = self._hub.agent_of(_bearer(scope))
        if agent is None and await self.forward(_bearer(scope), scope, receive, send):
            return
        visitor = self._visitor_of(scope) if self._people is not None else None
        caller = agent.session if agent is not None else visitor
        if caller is None:
            await _refuse(send, 401, "unauthorized", (b"www-authenticate", b"Bearer"))
            return
        if scope["method"] != "POST":
            # Nothing is sent without a request, and no session is kept: there is nothing to open.
            await _refuse(send, 405, "method_not_allowed", (b"allow", b"POST"))
            return
        manager = await self._start_manager()
        from starlette.requests import ClientDisconnect

        with suppress(ClientDisconnect):  # a CLI that ends does so in the midst of a request
            await manager.handle_request({**scope, _CALLER: caller}, receive, send)

    async def _start_manager(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                assert self._tasks is not None
                await anyio.to_thread.run_sync(_import)
                self._manager = await self._tasks.start(self._run_manager)
            return self._manager

    async def _run_manager(self, *, task_status: TaskStatus[StreamableHTTPSessionManager]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            make_server(self._answer, lambda scope: _tools_of(scope.get(_CALLER))),
            json_response=True,
            stateless=True,
            max_request_body_size=LARGEST_BODY,
        )
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()

    # --- calls ---------------------------------------------------------------------------------

    async def _answer(
        self, scope: Scope, name: str, arguments: dict[str, Any] | None, meta: object
    ) -> tuple[bool, str]:
        """The answer to a call: whether it failed, and its text."""
        given = msgspec.json.encode(arguments or {})
        caller = scope.get(_CALLER)
        try:
            if isinstance(caller, Visitor):
                result = await self._answer_person(caller, name, given)
            else:
                result = await self._answer_agent(str(caller), name, given, meta)
        except QuarterdeckError as error:
            return True, str(error)
        return False, msgspec.json.encode(result).decode()

    async def _answer_agent(self, session: str, name: str, given: bytes, meta: object) -> object:
        caller = self._hub.view(session)
        if caller is None or caller.run is None:
            raise Forbidden("this session has ended")

        async def note(error: QuarterdeckError) -> None:
            log.warning("session %s: %s is refused: %s", session, PREFIX + name, error)
            await self._note_refused(name, given, agent_name(session), None, error, session)

        self._refused.admit(session, self._now())
        try:
            under_way = self._one_of_few(session)
        except Conflict as error:
            await note(error)
            raise
        with under_way:
            try:
                wanted = read_arguments(name, given)
                call = await self._check(caller, name, given, meta)
            except (Forbidden, UsageError) as error:
                self._refused.add(session, self._now())
                await note(error)
                raise
            try:
                with own_work("agents"):
                    return await self._tools.call(caller, wanted, call)
            except REFUSALS as error:
                if isinstance(error, Forbidden):
                    self._refused.add(session, self._now())
                await note(error)
                raise

    async def _answer_person(self, visitor: Visitor, name: str, given: bytes) -> object:
        assert self._people is not None
        kinds = {each: kind for each, (kind, _, _) in PEOPLE_TOOLS.items()}
        about: str | None = None
        caller, tool = f"person {visitor.name}", PREFIX + name
        with self._one_of_few(caller):
            self._refused.admit(caller, self._now())
            verdict: Verdict | None = None
            try:
                wanted = read_arguments(name, given, kinds)
                about = getattr(wanted, "session", None)
                visitor.need(PEOPLE_TOOLS[name][1])
                verdict = rule_on_person(
                    visitor.name, tool, given, self._rules_for_people(), self._now()
                )
                check_person(verdict)
                if verdict.input:
                    wanted = read_arguments(name, bytes(verdict.input), kinds)
            except (Forbidden, UsageError) as error:
                self._refused.add(caller, self._now())
                await self._note_refused(name, given, visitor.name, verdict, error, about)
                raise
            refused: QuarterdeckError | None = None
            try:
                return await self._people.call(visitor, wanted)
            except REFUSALS as error:
                refused = error
                raise
            finally:
                # Afterwards, since only then it is known; and also if the caller does not wait.
                with anyio.CancelScope(shield=True):
                    if refused is not None:
                        await self._note_refused(name, given, visitor.name, verdict, refused, about)
                    else:
                        await self._note_allowed(name, given, visitor.name, verdict, about)

    async def _note_allowed(
        self, name: str, given: bytes, caller: str, verdict: Verdict | None, about: str | None
    ) -> None:
        """Keep the entry of a person's call that was let pass.

        One that only reads changes nothing, and must not fill the journal of the session that it
        reads: it is kept apart, and once in an hour.
        """
        if name not in _READING:
            await self._hub.calls.add(entry(PREFIX + name, given, caller, verdict), about)
        elif self._read.is_new(caller, f"{name} {about or ''}", self._now()):
            await self._hub.calls.add(entry(PREFIX + name, given, caller, verdict))

    async def _note_refused(
        self,
        name: str,
        given: bytes,
        caller: str,
        verdict: Verdict | None,
        error: QuarterdeckError,
        about: str | None,
    ) -> None:
        """Keep the entry of a call that was refused, unless this caller had very many of them."""
        if self._noted.is_new(caller, str(next(self._numbers)), self._now()):
            tool = PREFIX + one_line(name, LONGEST_NAME)
            await self._hub.calls.add(entry(tool, given, caller, verdict, str(error)), about)

    async def _check(
        self, caller: SessionView, name: str, given: bytes, meta: object
    ) -> RunningTool:
        """The CLI's call that this one is.

        Raises `Forbidden` unless rules and people have let it pass, and it is the first time.
        """
        tool = PREFIX + name
        rules = self._rules(caller)
        verdict = await anyio.to_thread.run_sync(
            rule_on_agent, caller, tool, given, rules, self._now()
        )
        if verdict.behavior is Behavior.DENY:
            raise Forbidden(verdict.message or "a rule denies this")
        named = meta.get(_CALL_ID) if isinstance(meta, dict) else None
        calls = [each for each in caller.holds.tools if each.tool == tool]
        if named is not None:
            calls = [each for each in calls if each.call == named]
        events = await self._events_since(caller, {each.call for each in calls})
        by_flags = cli_allows(caller.spec, caller.mode, tool)
        for call in calls:
            seen = look(events, call.call)
            if not seen.runs_with(given) or not seen.may_run(cli_allows=by_flags):
                continue
            if self._is_first(caller.session, call.call):
                return call
        raise Forbidden(
            "the agent's CLI has not announced this call with these arguments, nobody has allowed"
            " it, or it was served already. A rule of the policy, a person or the flag --allow of"
            " the session must allow it: settings of the CLI do not count"
        )

    async def _events_since(self, caller: SessionView, calls: set[str]) -> list[Event]:
        """The events of a session since its CLI has announced the first of these calls.

        Others may have written any number of events since.
        """
        events: list[Event] = []
        missing, upto = set(calls), caller.head
        while missing and upto >= max(1, caller.run_began):
            after = max(0, upto - LOOKED_AT)
            page = await self._hub.events(caller.session, after=after, limit=upto - after)
            found = [stored.event for stored in page]
            missing = {call for call in missing if not look(found, call).announced}
            events[:0] = found
            upto = after
        return events

    def _is_first(self, session: str, call: str) -> bool:
        """Whether an announced call was not served before."""
        key = (session, call)
        if key in self._served:
            return False
        self._served[key] = None
        while len(self._served) > SERVED:
            self._served.popitem(last=False)
        return True

    def _one_of_few(self, session: str) -> _Counted:
        if self._under_way.get(session, 0) >= AT_ONCE:
            raise Conflict("agents_calls", f"{AT_ONCE} calls of this caller are under way already")
        return _Counted(self._under_way, session)


class _Counted:
    """Counts a call while it is under way."""

    def __init__(self, counts: dict[str, int], session: str) -> None:
        self._counts, self._session = counts, session

    def __enter__(self) -> None:
        self._counts[self._session] = self._counts.get(self._session, 0) + 1

    def __exit__(self, *_: object) -> None:
        self._counts[self._session] -= 1
        if not self._counts[self._session]:
            del self._counts[self._session]


def read_arguments(
    name: str, given: bytes, kinds: Mapping[str, type[Arguments]] = TOOLS
) -> Arguments:
    """What a tool is called with. Raises `UsageError`."""
    kind = kinds.get(name)
    if kind is None:
        raise UsageError(f"there is no tool {name!r}")
    try:
        return msgspec.json.decode(given, type=kind)
    except msgspec.DecodeError as error:  # also of a wrong type or value
        raise UsageError(f"{name}: {error}") from error


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of what a tool takes, without references."""
    defs = msgspec.json.schema(kind)["$defs"]
    found: dict[str, Any] = dict(defs[kind.__name__])
    found.pop("title", None)
    found.pop("description", None)
    return found


Answer = Callable[[Scope, str, "dict[str, Any] | None", object], Awaitable[tuple[bool, str]]]


def _tools_of(caller: object) -> dict[str, tuple[type[Arguments], str]]:
    """The tools that a caller is told of."""
    if isinstance(caller, Visitor):
        return tools_for(caller.role)
    return {name: (kind, kind.__doc__ or "") for name, kind in TOOLS.items()}


def make_server(
    answer: Answer, tools_of: Callable[[Scope], dict[str, tuple[type[Arguments], str]]]
) -> Server[Any]:
    """The MCP server, which asks `answer` for the result of a call."""
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server

    async def list_tools(
        context: ServerRequestContext[Any], _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        scope = context.request.scope if context.request is not None else {}
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=" ".join(words.split()),
                    input_schema=schema_of(kind),
                    annotations=types.ToolAnnotations(read_only_hint=name in _READING),
                )
                for name, (kind, words) in tools_of(scope).items()
            ]
        )

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        scope = context.request.scope if context.request is not None else {}
        meta = dict(context.meta) if context.meta else None
        failed, text = await answer(scope, params.name, params.arguments, meta)
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=failed)

    return Server(
        NAME,
        version="1",
        instructions=(
            "Start agents, give them work, and read what they did. Questions of theirs are"
            " answered by people."
        ),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _import() -> None:
    """In a thread: it takes a second."""
    import mcp.server.lowlevel.server
    import mcp.server.streamable_http_manager  # noqa: F401


def _bearer(scope: Scope) -> str:
    given = [bytes(value) for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1:
        return ""
    kind, _, token = given[0].decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


async def _refuse(send: Send, status: int, code: str, *headers: tuple[bytes, bytes]) -> None:
    body = msgspec.json.encode({"type": f"urn:quarterdeck:{code}", "status": status, "code": code})
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/problem+json"), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})
