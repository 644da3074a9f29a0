"""The tools with which an agent directs the agents that it has started.

Owns what each tool does, for a caller that `server` has found by its token. Who may do what is in
`rules`. There is no tool that answers a question: a person does that. Nothing here knows MCP: a
tool takes a struct, and gives a value that can be written as JSON.

What is told of a session is in `looks`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Protocol
from weakref import WeakValueDictionary

import anyio
import msgspec
from msgspec import Meta, Raw

from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.ids import derived_id, new_id
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.mcp.looks import (
    Found,
    Pages,
    SearchTexts,
    SessionInfo,
    Waited,
    find,
    info_of,
    read_pages,
    short_diff,
    wait_for,
)
from quarterdeck.fronts.mcp.rules import (
    AgentLimits,
    ChildRequest,
    check_messages,
    check_reach,
    check_spawn,
    child_spec,
    envelope,
)
from quarterdeck.hub.api import CallRecord, HubApi
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.holds import RunningTool
from quarterdeck.protocol.machine_requests import Changes
from quarterdeck.protocol.session_view import SessionView, check_revive
from quarterdeck.protocol.sessions import agent_name

PAGE = 500
"""Views that are read at once."""
LONGEST_MESSAGE = 100_000
WAIT_SECONDS = 120

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_MESSAGE)]
SessionId = Annotated[str, Meta(min_length=1, max_length=128, description="The id of a session.")]


class AgentHub(HubApi, Protocol):
    """What these tools ask of the hub."""

    def agent_of(self, token: str) -> SessionView | None:
        """The session whose agent has this token."""

    async def spawn(
        self, command: cmd.CreateSession, lineage: tuple[str, ...] = (), person: str = ""
    ) -> cmd.Outcome:
        """Create a session for an agent."""

    @property
    def calls(self) -> CallRecord:
        """Where calls that no CLI makes are kept for the audit."""


# --- what the tools take -------------------------------------------------------------------------


class Arguments(Value, forbid_unknown_fields=True):
    """The base of what tools take. Unknown members are refused."""


class ListSessions(Arguments):
    """List the sessions that you have started, and those that these have started."""


class Spawn(Arguments):
    """Start another agent with a task. It inherits your permissions, policy and folder, and spends
    your budget. Use `wait` for its end, and `read` for what it did.
    """

    prompt: Annotated[Text, Meta(description="The task, with all that the agent needs to know.")]
    name: Annotated[str, Meta(max_length=100)] | None = None
    model: Annotated[str, Meta(max_length=100)] | None = None
    effort: Annotated[str, Meta(max_length=20)] | None = None
    mode: (
        Annotated[
            str,
            Meta(max_length=40, description="A permission mode that is not wider than yours."),
        ]
        | None
    ) = None
    worktree: Annotated[
        bool, Meta(description="Work on a new branch, in a worktree of its own.")
    ] = False
    budget_usd: Annotated[float, Meta(gt=0)] | None = None
    budget_tokens: Annotated[int, Meta(gt=0)] | None = None


class Send(Arguments):
    """Send a message to an agent that you started. It is queued while the agent works."""

    session: SessionId
    text: Text


class Wait(Arguments):
    """Wait until an agent has nothing to do, waits for a person, or has ended. Gives its last
    answer.
    """

    session: SessionId
    seconds: Annotated[int, Meta(ge=1, le=WAIT_SECONDS)] = 60


class Read(Arguments):
    """Read what an agent did, from an event number on. `next` is the number to continue with."""

    session: SessionId
    after: Annotated[int, Meta(ge=0)] = 0


class GetChanges(Arguments):
    """The changes in the folder of an agent, as a diff."""

    session: SessionId


class Interrupt(Arguments):
    """Interrupt the turn of an agent."""

    session: SessionId


class Stop(Arguments):
    """End an agent. A message starts it again."""

    session: SessionId


class SearchText(Arguments):
    """Search the texts of the agents that you started."""

    words: Annotated[str, Meta(min_length=1, max_length=500)]


class AgentTools:
    """The tools, over one hub."""

    def __init__(
        self,
        hub: AgentHub,
        *,
        changes: Callable[[str], Awaitable[Changes]],
        search: SearchTexts,
        limits: AgentLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._hub = hub
        self._changes = changes
        self._search = search
        self.limits = limits or AgentLimits()
        self._now = now
        self._sending: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """By family: of two messages at once, not both must be the last that is allowed."""

    async def call(
        self, caller: SessionView, arguments: Arguments, tool_call: RunningTool | None = None
    ) -> object:
        """Do what a tool does. Raises a `QuarterdeckError` that says why not.

        With the CLI's own call, the same one twice is once, also if the hub was killed meanwhile.
        """
        match arguments:
            case ListSessions():
                return [info_of(view) async for view in self._descendants(caller)]
            case Spawn():
                return await self._spawn(caller, arguments, _id(caller, tool_call))
            case Send(session=id_, text=text):
                return await self._send(caller, id_, text, _id(caller, tool_call))
            case Wait(session=id_, seconds=seconds):
                return await self._wait(caller, id_, seconds)
            case Read(session=id_, after=after):
                return await self._read(caller, id_, after)
            case GetChanges(session=id_):
                await self._target(caller, id_)
                return short_diff(await self._changes(id_))
            case Interrupt(session=id_):
                await self._target(caller, id_)
                await self._hub.submit(cmd.Interrupt(session=id_, by=agent_name(caller.session)))
            case Stop(session=id_):
                await self._target(caller, id_)
                await self._hub.submit(cmd.StopSession(session=id_, by=agent_name(caller.session)))
            case SearchText(words=words):
                return await self._find(caller, words)
            case _:
                raise NotFound("tool", type(arguments).__name__)
        return info_of(await self._hub.session(id_))

    # --- each of them --------------------------------------------------------------------------

    async def _spawn(self, caller: SessionView, wanted: Spawn, id_: str) -> SessionInfo:
        now = int(self._now() * 1000)
        async with self._one_of_family(caller):
            family = await self._family(caller)
            below = [view for view in family if caller.session in view.lineage]
            for made in below:
                if made.session == id_:  # by a hub that was killed before it answered
                    return info_of(made)
            check_spawn(caller, below, self.limits, now)
            check_messages(caller, family, self.limits, now)
            request = ChildRequest(
                name=wanted.name,
                model=wanted.model,
                effort=wanted.effort,
                mode=wanted.mode,
                worktree=wanted.worktree,
                budget_usd=wanted.budget_usd,
                budget_tokens=wanted.budget_tokens,
            )
            command = cmd.CreateSession(
                session=id_,
                spec=child_spec(caller, request, id_, self.limits),
                prompt=_content(caller, wanted.prompt),
                prompt_id=new_id(),
                by=agent_name(caller.session),
            )
            lineage = (*caller.lineage, caller.session)
            await self._hub.spawn(command, lineage, caller.user)
        return info_of(await self._hub.session(id_))

    async def _send(self, caller: SessionView, id_: str, text: str, prompt: str) -> SessionInfo:
        check_revive(target := await self._target(caller, id_))
        command = cmd.SendPrompt(
            session=id_,
            prompt=prompt,
            content=_content(caller, text),
            by=agent_name(caller.session),
        )
        async with self._one_of_family(caller):
            if prompt not in target.prompts:  # else a hub was killed before it answered
                now = int(self._now() * 1000)
                check_messages(caller, await self._family(caller), self.limits, now)
            await self._hub.submit(command)
        return info_of(await self._hub.session(id_))

    async def _wait(self, caller: SessionView, id_: str, seconds: int) -> Waited:
        return await wait_for(self._hub, await self._target(caller, id_), seconds)

    async def _read(self, caller: SessionView, id_: str, after: int) -> Pages:
        return await read_pages(self._hub, await self._target(caller, id_), after)

    async def _find(self, caller: SessionView, words: str) -> list[Found]:
        own = {view.session async for view in self._descendants(caller)}
        return await find(self._search, words, own)

    # --- sessions ------------------------------------------------------------------------------

    async def _target(self, caller: SessionView, id_: str) -> SessionView:
        view = await self._hub.session(id_)
        check_reach(caller, view)
        return view

    def _one_of_family(self, caller: SessionView) -> anyio.Lock:
        return self._sending.setdefault((*caller.lineage, caller.session)[0], anyio.Lock())

    async def _family(self, caller: SessionView) -> list[SessionView]:
        """All sessions below the one of the caller's lineage that a person has started."""
        if not caller.lineage:
            return [view async for view in self._descendants(caller)]
        try:
            top = await self._hub.session(caller.lineage[0])
        except NotFound:  # a person has deleted it: then nobody knows its age
            top = SessionView(session=caller.lineage[0])
        return [view async for view in self._descendants(top)]

    async def _descendants(self, caller: SessionView) -> AsyncIterator[SessionView]:
        """The caller's tree, newest first. What is older than the caller cannot be in it."""
        for archived in (False, True):
            after: str | None = None
            while page := await self._hub.sessions(after=after, limit=PAGE, archived=archived):
                after = page[-1].session
                for view in page:
                    if caller.session in view.lineage and not view.deleted:
                        yield view
                if page[-1].created < caller.created:
                    break


def _id(caller: SessionView, call: RunningTool | None) -> str:
    """The id of what a call makes."""
    if call is None:
        return new_id()
    return derived_id(call.since / 1000, caller.session, caller.run or "", call.call)


def _content(caller: SessionView, text: str) -> Raw:
    return Raw(msgspec.json.encode(envelope(caller, text)))
