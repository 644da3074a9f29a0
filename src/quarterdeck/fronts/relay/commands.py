"""What a frontend asks for, carried out: its lines as commands of the hub, in its person's name.

Owns which session a line is meant for, and which question an answer belongs to. Rights are those of
the person's role, as everywhere. Above is the connection; below is the hub.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.relay.answers import to_answer
from quarterdeck.fronts.relay.asgi import Caller
from quarterdeck.fronts.relay.errors import BadLine
from quarterdeck.fronts.relay.inbound import AnswerLine, PromptLine, RequestLine
from quarterdeck.fronts.relay.outbound import SessionLines
from quarterdeck.hub.api import HubApi, act_as
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.command_table import right_for
from quarterdeck.protocol.commands import (
    AnswerAsk,
    AnyCommand,
    Control,
    Interrupt,
    Outcome,
    SendPrompt,
    StopSession,
)
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    Event,
    RunEnded,
    RunStarting,
    Said,
    Sent,
)
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.wire import codec
from quarterdeck.wire.commands import Initialize
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.outbound import Request
from quarterdeck.wire.rawjson import EMPTY, is_null, members, same_json

SETTLED_KEPT = 1000
"""Requests that are not open any more, of which a late answer is told why it is none."""
_LARGE_PAGE = 200
_IN_TURN = frozenset({SessionState.WORKING, SessionState.WAITING})
_FOR_THE_HUB = (
    "hooks",
    "sdkMcpServers",
    "sdkMcpServerConfigs",
    "systemPrompt",
    "appendSystemPrompt",
    "agents",
    "jsonSchema",
)
"""What an `initialize` may set up. The hub's own has done so, and works once."""


class FrontendCommands:
    """Carries out what one frontend asks for."""

    def __init__(
        self,
        hub: HubApi,
        caller: Caller,
        session_lines: Mapping[str, SessionLines],
        sessions: tuple[str, ...] = (),
    ) -> None:
        self._hub = hub
        self._caller = caller
        self._open_sessions = session_lines
        self._sessions = sessions
        """Those that the frontend asked for; none for all."""
        self._names: dict[str, set[str]] = {}
        """Sessions by the ids of the CLI's conversations. A CLI may claim any id."""
        self._running: set[str] = set()
        self._answered: dict[str, None] = {}
        """Questions that were answered by this frontend."""
        self._requests: dict[str, str] = {}
        """Questions that are open, with the ids of their requests."""
        self._settled: dict[str, str] = {}
        """Why requests are not open any more."""

    # --- what it knows -------------------------------------------------------------------------

    def know(self, view: SessionView) -> None:
        """A session with a CLI is there."""
        self._running.add(view.session)
        if view.cli_session is not None:
            self._names.setdefault(view.cli_session, set()).add(view.session)

    def note(self, session_lines: SessionLines, event: Event, *, late: bool) -> None:
        """The frontend was told of an event. `late`: it was not there when it happened."""
        if session_lines.cli_session is not None:
            self._names.setdefault(session_lines.cli_session, set()).add(session_lines.session)
        match event:
            case RunStarting() if not late:
                self._running.add(session_lines.session)
            case RunEnded() if not late:
                self._running.discard(session_lines.session)
            case AskOpened(ask=ask, request_id=request_id):
                self._requests[ask] = request_id
            case AskAnswered(ask=ask, by=by):
                self._settle(ask, f"already answered by {by}")
            case AskWithdrawn(ask=ask) as withdrawn:
                self._settle(ask, f"it was withdrawn: {with_texts(withdrawn).reason}")
            case _:
                pass

    def _settle(self, ask: str, why: str) -> None:
        if (request_id := self._requests.pop(ask, None)) is not None:
            self._settled[request_id] = why
            while len(self._settled) > SETTLED_KEPT:
                del self._settled[next(iter(self._settled))]

    def has_answered(self, ask: str) -> bool:
        """Whether this frontend answered a question."""
        return ask in self._answered

    # --- what it is asked for ------------------------------------------------------------------

    async def prompt(self, asked: PromptLine) -> None:
        """Send a prompt. Raises what the hub raises, and `BadLine`."""
        self._caller.need(Right.STEER)
        session = await self._session(asked.session_id)
        if asked.priority == "now":
            await self._interrupt(session)
        command = SendPrompt(
            session=session,
            prompt=asked.uuid or new_id(),
            content=asked.content,
            steer=asked.priority == "next",
        )
        await self._do(command)

    async def _interrupt(self, session: str) -> None:
        """End the running turn, if there is one. Between turns this would end background work."""
        if (await self._hub.session(session)).state in _IN_TURN:
            with contextlib.suppress(Conflict):  # its CLI is gone: the prompt starts another
                await self._do(Interrupt(session=session))

    async def answer(self, asked: AnswerLine) -> None:
        """Answer a permission request. Raises what the hub raises, and `BadLine`."""
        self._caller.need(Right.STEER)
        given = asked.given
        session = await self._session(asked.session_id) if asked.session_id else None
        found = [
            ask.opened
            for ask in await self._hub.asks(session=session)
            if ask.opened.request_id == given.request_id
        ]
        if not found:
            why = self._settled.get(given.request_id, "no such request is open")
            raise BadLine("not_open", why, "response.request_id")
        if len(found) > 1:
            raise BadLine("which_session", "several sessions have such a request", "session_id")
        command = AnswerAsk(ask=found[0].ask, answer=to_answer(given, found[0]))
        self._answered[found[0].ask] = None
        try:
            await self._do(command)
        except QuarterdeckError:
            del self._answered[found[0].ask]
            raise
        while len(self._answered) > SETTLED_KEPT:
            del self._answered[next(iter(self._answered))]

    async def call(self, called: RequestLine) -> Raw:
        """Carry out a control request; gives the body of its answer. Raises what the hub raises."""
        session = await self._session(called.session_id)
        match called.subtype:
            case "initialize":
                self._caller.need(Right.READ)
                return await self._initialize(session, called.request)
            case "interrupt":
                await self._do(Interrupt(session=session))
                return EMPTY
            case "end_session":
                await self._do(StopSession(session=session))
                return EMPTY
            case _:
                outcome = await self._do(Control(session=session, request=called.request))
                return outcome.answer or EMPTY

    async def _initialize(self, session: str, request: Raw) -> Raw:
        """The answer that the CLI gave to the hub's own `initialize`.

        A CLI takes one only. What a frontend would set up with its own cannot be had.
        """
        given = members(request)
        for name in _FOR_THE_HUB:
            if name in given and not is_null(given[name]) and not _is_empty(given[name]):
                raise UsageError(f"request.{name}: the hub has initialized this CLI already")
        view = await self._hub.session(session)
        if view.run is None:
            raise Conflict("not_running", "the session has no CLI")
        found = members(await self._greeting(view))
        pending = [
            {"request_id": ask.opened.request_id, "request": ask.opened.request}
            for ask in await self._hub.asks(session=session)
        ]
        return Raw(msgspec.json.encode({**found, "pending_permission_requests": pending}))

    async def _greeting(self, view: SessionView) -> Raw:
        """The body of the CLI's answer to `initialize`, from the start of its run."""
        asked: set[str] = set()
        after = max(0, view.run_began - 1)
        while page := await self._hub.events(view.session, after=after, limit=_LARGE_PAGE):
            after = page[-1].seq
            for stored in page:
                match stored.event:
                    case Sent(line=line):
                        message = codec.to_cli(bytes(line))
                        if isinstance(message, Request) and isinstance(message.request, Initialize):
                            asked.add(message.request_id)
                    case Said(line=line) if asked:
                        answer = codec.from_cli(bytes(line))
                        if isinstance(answer, ControlResponse) and (
                            answer.response.request_id in asked and answer.response.ok
                        ):
                            return answer.response.response_json or EMPTY
                    case _:
                        pass
        raise Conflict("not_initialized", "the CLI has not answered the hub yet; try again")

    async def _do(self, command: AnyCommand) -> Outcome:
        """Submit a command, if the person has its right."""
        self._caller.need(right_for(command))
        if isinstance(command, AnswerAsk):
            command = replace(command, role=self._caller.role.value)
        with act_as(self._caller.role, self._caller.name):
            return await self._hub.submit(replace(command, by=self._caller.name))

    async def _session(self, name: str) -> str:
        """The session that a line is meant for. Raises `BadLine`.

        Without a name it is the only one that has a CLI. To guess among several would give a prompt
        to the wrong agent.
        """
        if name:
            return await self._find_session(name)
        if len(self._sessions) == 1:
            return self._sessions[0]
        if len(self._running) == 1:
            return next(iter(self._running))
        if self._running:
            raise BadLine("which_session", "several sessions are here: name one", "session_id")
        raise BadLine("no_session", "no session is here", "session_id")

    async def _find_session(self, name: str) -> str:
        if name in self._open_sessions or name in self._running:
            return name
        known = self._names.get(name, set())
        found = (known & self._running) or known
        if len(found) == 1:
            return next(iter(found))
        if found:
            raise BadLine(
                "which_session",
                "several sessions have this id: use the hub's id, the `session` of a status",
                "session_id",
            )
        try:
            return (await self._hub.session(name)).session
        except (NotFound, UsageError) as error:
            raise BadLine(
                "no_session", f"no session here has the id {name[:100]!r}", "session_id"
            ) from error


def _is_empty(value: Raw) -> bool:
    """Whether a member says nothing: an empty object, list or text."""
    return any(same_json(value, Raw(empty)) for empty in (b"{}", b"[]", b'""'))
