"""The tools with which an agent directs the agents that it has started.

Owns what each tool does, for a caller that `server` has found by its token. Who may do what is in
`rules`. There is no tool that answers a question: a person does that. Nothing here knows MCP: a
tool takes a struct, and gives a value that can be written as JSON.

The texts that come back are those of other agents. They are bounded, so that none fills the
caller's context.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Protocol

import anyio
import msgspec
from msgspec import Meta, Raw

from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.ids import derived_id, new_id
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.mcp.rules import (
    AgentLimits,
    MessageCount,
    Wish,
    check_reach,
    check_revive,
    check_spawn,
    child_spec,
    envelope,
)
from quarterdeck.history.story import Answer, Call, Notice, Outcome, Prompt, StoryFold
from quarterdeck.hub.api import HubApi
from quarterdeck.journal.search import Hits, Search
from quarterdeck.journal.views import SessionView
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.events import TurnEnded
from quarterdeck.protocol.holds import RunningTool
from quarterdeck.protocol.machine_requests import Changes
from quarterdeck.protocol.sessions import SessionState, agent_name
from quarterdeck.wire.tools import one_line

PAGE = 500
"""Views that are read at once."""
EVENTS = 500
"""Events of a session that one `read` looks at."""
LONGEST_TEXT = 20_000
"""Characters that a tool gives back."""
LONGEST_MESSAGE = 100_000
RESULT = 2000
"""Characters of the result of one tool call of another agent."""
SEARCH_PAGES = 5
WAIT_SECONDS = 120

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_MESSAGE)]
SessionId = Annotated[
    str, Meta(min_length=1, max_length=128, description="The id of a session that you started.")
]


class AgentHub(HubApi, Protocol):
    """What these tools ask of the hub."""

    def agent_of(self, token: str) -> SessionView | None:
        """The session whose agent has this token."""

    async def spawn(
        self, command: cmd.CreateSession, lineage: tuple[str, ...] = (), person: str = ""
    ) -> cmd.Outcome:
        """Create a session for an agent."""


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
    """Read what an agent did, from an event number on. `next` is the number to go on with."""

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


# --- what they give ------------------------------------------------------------------------------


class SessionInfo(Value, omit_defaults=False):
    """A session, as an agent sees it."""

    session: str
    name: str
    state: str
    turns: int
    cost_usd: float
    queued: int
    waits_for_person: bool
    started_by: str
    detail: str = ""


class Waited(Value, omit_defaults=False):
    """The session, and its last answer."""

    session: SessionInfo
    done: bool
    answer: str


class Pages(Value, omit_defaults=False):
    """What an agent did. `next` is null at the end."""

    text: str
    next: int | None


class Found(Value, omit_defaults=False):
    """A text that was found."""

    session: str
    event: int
    text: str


_RESTING = frozenset({SessionState.IDLE, SessionState.WAITING, SessionState.ENDED})


class AgentTools:
    """The tools, over one hub."""

    def __init__(
        self,
        hub: AgentHub,
        *,
        changes: Callable[[str], Awaitable[Changes]],
        search: Callable[[Search], Awaitable[Hits]],
        limits: AgentLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._hub = hub
        self._changes = changes
        self._search = search
        self.limits = limits or AgentLimits()
        self._now = now
        self._messages = MessageCount()
        self._spawning = anyio.Lock()

    async def call(
        self, caller: SessionView, arguments: Arguments, tool_call: RunningTool | None = None
    ) -> object:
        """Do what a tool does. Raises a `QuarterdeckError` that says why not.

        With the CLI's own call, the same one twice is once, also if the hub was killed meanwhile.
        """
        match arguments:
            case ListSessions():
                return [_info(view) async for view in self._descendants(caller)]
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
                return _short_diff(await self._changes(id_))
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
        return _info(await self._hub.session(id_))

    # --- each of them --------------------------------------------------------------------------

    async def _spawn(self, caller: SessionView, wanted: Spawn, id_: str) -> SessionInfo:
        now = int(self._now() * 1000)
        async with self._spawning:  # two at once must not both be the last that is allowed
            below = [view async for view in self._descendants(caller)]
            for made in below:
                if made.session == id_:  # by a hub that was killed before it answered
                    return _info(made)
            check_spawn(caller, below, self.limits, now)
            self._messages.admit(caller, self.limits, now)
            wish = Wish(
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
                spec=child_spec(caller, wish, id_, self.limits),
                prompt=_content(caller, wanted.prompt),
                prompt_id=new_id(),
                by=agent_name(caller.session),
            )
            lineage = (*caller.lineage, caller.session)
            await self._hub.spawn(command, lineage, caller.user)
        return _info(await self._hub.session(id_))

    async def _send(self, caller: SessionView, id_: str, text: str, prompt: str) -> SessionInfo:
        check_revive(await self._target(caller, id_))
        self._messages.admit(caller, self.limits, int(self._now() * 1000))
        await self._hub.submit(
            cmd.SendPrompt(
                session=id_,
                prompt=prompt,
                content=_content(caller, text),
                by=agent_name(caller.session),
            )
        )
        return _info(await self._hub.session(id_))

    async def _wait(self, caller: SessionView, id_: str, seconds: int) -> Waited:
        view = await self._target(caller, id_)
        with anyio.move_on_after(seconds):
            if not _rests(view):
                async for _ in self._hub.follow({id_: view.head}):
                    view = await self._hub.session(id_)
                    if _rests(view):
                        break
        return Waited(session=_info(view), done=_rests(view), answer=await self._last_answer(view))

    async def _last_answer(self, view: SessionView) -> str:
        """The text of the last turn, if it is among the last events."""
        for stored in reversed(
            await self._hub.events(view.session, after=max(0, view.head - EVENTS), limit=EVENTS)
        ):
            if isinstance(stored.event, TurnEnded):
                return stored.event.text[:LONGEST_TEXT]
        return ""

    async def _read(self, caller: SessionView, id_: str, after: int) -> Pages:
        view = await self._target(caller, id_)
        fold = StoryFold()
        texts: list[str] = []
        left = LONGEST_TEXT
        cursor = after
        for stored in await self._hub.events(id_, after=after, limit=EVENTS):
            cursor = stored.seq
            for entry in fold.entries(stored.event, stored.at):
                if text := _plain(entry):
                    texts.append(text[:left])
                    left -= len(texts[-1])
            if left <= 0:
                break
        return Pages(text="\n".join(texts), next=cursor if cursor < view.head else None)

    async def _find(self, caller: SessionView, words: str) -> list[Found]:
        own = {view.session async for view in self._descendants(caller)}
        found: list[Found] = []
        before: int | None = None
        for _ in range(SEARCH_PAGES):
            page = await self._search(Search(words=words, before=before, limit=100))
            found += [
                Found(session=hit.session, event=hit.seq, text=hit.snippet.text)
                for hit in page.hits
                if hit.session in own
            ]
            before = page.next
            if before is None:
                break
        return found[:50]

    # --- sessions ------------------------------------------------------------------------------

    async def _target(self, caller: SessionView, id_: str) -> SessionView:
        view = await self._hub.session(id_)
        check_reach(caller, view)
        return view

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


def _rests(view: SessionView) -> bool:
    """Whether nothing will happen without somebody else."""
    return view.state in _RESTING and not (view.run is not None and view.queued)


def _id(caller: SessionView, call: RunningTool | None) -> str:
    """The id of what a call makes."""
    if call is None:
        return new_id()
    return derived_id(call.since / 1000, caller.session, caller.run or "", call.call)


def _content(caller: SessionView, text: str) -> Raw:
    return Raw(msgspec.json.encode(envelope(caller, text)))


def _info(view: SessionView) -> SessionInfo:
    return SessionInfo(
        session=view.session,
        name=view.name,
        state=view.state.value,
        turns=view.turns,
        cost_usd=round(view.cost_usd, 6),
        queued=len(view.queued),
        waits_for_person=bool(view.asks),
        started_by=view.by,
        detail=one_line(view.ended.reason if view.ended and view.run is None else "", 500),
    )


def _plain(entry: object) -> str:
    match entry:
        case Prompt(text=text, by=by):
            return f"[prompt by {by}] {text}"
        case Answer(text=text, inner=False):
            return f"[agent] {text}"
        case Call(tool=tool, title=title, inner=False):
            return f"[{tool}] {title}"
        case Outcome(text=text, failed=failed, inner=False):
            return f"[{'error' if failed else 'result'}] {text[:RESULT]}"
        case Notice(text=text, inner=False):
            return f"[note] {text}"
        case _:
            return ""


def _short_diff(changes: Changes) -> Changes:
    if len(changes.text) <= LONGEST_TEXT:
        return changes
    return msgspec.structs.replace(changes, text=changes.text[:LONGEST_TEXT], text_cut=True)
