"""Turns by the library, without a hub: a process for each turn.

Owns who answers the agent's questions. An `Arbiter` decides about every call, and says when
a person is asked. Where a decision is needed, `decide` is asked; if it gives none in time, or if
there is none, the call is denied, and the next prompt says so. Nothing is allowed without a
decision.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from msgspec.structs import replace

from quarterdeck.agent.agent import Agent
from quarterdeck.agent.asks import AnyAsk, Decision, Deny
from quarterdeck.agent.background import Background
from quarterdeck.agent.hooks import Hook, HookOutput
from quarterdeck.agent.inbox import Messages
from quarterdeck.agent.options import Options
from quarterdeck.agent.service import Decide
from quarterdeck.agent.start import prepare_start
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import LinkClosed, QuarterdeckError, TurnFailed
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.loop.arbiter import HOOK_SECONDS, Arbiter, Person, TurnArbiter
from quarterdeck.loop.boxes import Box
from quarterdeck.loop.prompts import structured_result
from quarterdeck.loop.state import SHOWN_TEXT, Limited, TurnOutcome
from quarterdeck.loop.worker import EDITING_TOOLS, TurnRequest
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.wire.base import Message
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.hooks import HookEvent, HookInput, UnknownHook
from quarterdeck.wire.messages import Assistant, AssistantError, RateLimitEvent, Result
from quarterdeck.wire.reports import RateLimitStatus
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import Version

log = logging.getLogger(__name__)

IDLE_SECONDS = 3.0
"""How long an idle CLI may take to report that it is idle."""
TOO_MANY_REQUESTS = 429
_BUSY = frozenset({State.WORKING, State.WAITING, State.COMPACTING, State.RETRYING})


NOBODY = "nobody was there to allow it"


class AgentWorker:
    """Runs each turn in a process of its own, on this machine."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        decide: Decide | None = None,
        arbiter: Arbiter | None = None,
        box: Box | None = None,
    ) -> None:
        """`arbiter` decides about all calls, and asks `decide` only if a person is to decide.

        `box` puts each CLI into a sandbox.
        """
        self._options = options or Options()
        self._decide = decide
        self._arbiter = arbiter
        self._box = box
        self._agent: Agent | None = None

    async def run(self, request: TurnRequest) -> TurnOutcome:
        """Run a turn to its end, with its background tasks."""
        seen = _Seen()
        person = None if self._decide is None else _person(self._decide)
        arbiter: TurnArbiter
        if self._arbiter is None:
            arbiter = _AskPerson(person, request.spec.ask_timeout)
        else:
            arbiter = self._arbiter.turn(request, person)
        undrained = 0
        error = ""
        try:
            async with self._make_agent(self._options_for(request), arbiter, seen) as agent:
                messages = agent.messages()
                async with background_tasks() as tasks:
                    tasks.start_soon(_follow, messages, seen, arbiter)
                    try:
                        async with agent:
                            self._agent = agent
                            await agent.query(request.prompt).finish()
                            seconds = request.spec.background_seconds
                            undrained = await _drain(agent, seen, seconds)
                    finally:
                        self._agent = None
        except (LinkClosed, TurnFailed) as failure:
            # A CLI that cannot be started is raised: no further turn would mend it.
            error, undrained = str(failure).partition("\n")[0], 0
        return seen.outcome(error, arbiter.denied, undrained)

    @asynccontextmanager
    async def _make_agent(
        self, options: Options, arbiter: TurnArbiter, seen: _Seen
    ) -> AsyncIterator[Agent]:
        """The agent of a turn, to be started; in a sandbox if there is to be one."""

        async def show(given: HookInput | UnknownHook) -> HookOutput:
            return await arbiter.show(given, agent.version)

        hooks = [Hook(event=HookEvent.PRE_TOOL_USE, function=show, timeout=HOOK_SECONDS)]
        if self._arbiter is None:
            hooks = []
        if self._box is None:
            agent = Agent(options, decide=arbiter.decide, hooks=hooks)
            yield agent
            return
        with ArgumentFiles() as files:
            ready = await prepare_start(options, files, hooked=True)
            async with (
                self._box(ready.command, ready.env, str(options.cwd)) as boxed,
                await SubprocessLink.start(
                    boxed.command, cwd=options.cwd, env=boxed.env, steps=options.stop
                ) as link,
            ):
                seen.sandbox = boxed.sandbox
                agent = Agent(
                    options, decide=arbiter.decide, hooks=hooks, link=link, version=ready.version
                )
                yield agent

    async def interrupt(self) -> None:
        """End the running turn."""
        if self._agent is not None:
            with suppress(QuarterdeckError, TimeoutError), anyio.fail_after(10):
                await self._agent.interrupt()

    async def finish(self, session: str | None) -> None:
        """Each turn has ended with its process: nothing runs any more."""

    def _options_for(self, request: TurnRequest) -> Options:
        base = self._options
        limits = [each for each in (base.max_budget_usd, request.budget_usd) if each is not None]
        denied = base.disallowed_tools
        if not request.kind.changes_files:
            denied = (*denied, *(tool for tool in EDITING_TOOLS if tool not in denied))
        return replace(
            base,
            cwd=request.directory,
            resume=request.session,
            disallowed_tools=denied,
            max_budget_usd=min(limits) if limits else None,
            json_schema=None if request.schema is None else request.schema.decode(),
            model=request.model or base.model,
        )


def _person(decide: Decide) -> Person:
    """Asks a function, for as long as is wanted."""

    async def ask(ask: AnyAsk, seconds: float | None) -> Decision | None:
        with anyio.move_on_after(seconds):
            given = decide(ask)
            return await given if inspect.isawaitable(given) else given
        return None

    return ask


class _AskPerson:
    """Answers the questions of one turn where no policy decides."""

    def __init__(self, person: Person | None, seconds: float | None) -> None:
        self._person = person
        self._seconds = seconds
        self.denied: list[str] = []

    async def show(self, seen: HookInput | UnknownHook, version: Version | None) -> HookOutput:
        """Say nothing: the CLI goes on by itself."""
        del seen, version
        return SyncOutput()

    async def decide(self, ask: AnyAsk) -> Decision:
        """Ask the caller's function, for as long as is set."""
        if self._person is not None:
            decision = await self._person(ask, self._seconds)
            if decision is not None:
                return decision
        self.denied.append(denied_call(ask.tool_name, ask.action.title, NOBODY))
        return denial(ask.tool_name)

    async def observe(self, message: Message) -> None:
        """Nothing depends on it."""


def denied_call(tool: str, title: str, why: str) -> str:
    """A denied call, as the report and the next prompt have it."""
    return f"{tool}: {title[:150]} ({why[:150]})"


def denial(tool: str) -> Deny:
    """The denial of a call about which nobody has decided."""
    return Deny(
        f"{tool} was denied: nobody was there to decide, and no rule allows it."
        " Work without it, or say what you would need."
    )


class _Seen:
    """What the CLI said in one turn, and in those that its background tasks began."""

    def __init__(self) -> None:
        self.background = Background()
        self.sandbox = ""
        self._results: list[Result] = []
        self._limit: Limited | None = None

    def observe(self, message: Message) -> None:
        """Note a message."""
        self.background.observe(message)
        match message:
            case Result():
                self._results.append(message)
            case RateLimitEvent(rate_limit_info=info):
                rejected = info.status is RateLimitStatus.REJECTED
                self._limit = Limited(resets_at=info.resets_at) if rejected else None
            case Assistant(error=AssistantError.RATE_LIMIT) if self._limit is None:
                self._limit = Limited()
            case _:
                pass

    def outcome(self, error: str, denied: list[str], undrained: int) -> TurnOutcome:
        """All of it as an outcome."""
        last = self._results[-1] if self._results else None
        text = "\n\n".join(result.result for result in self._results if result.result)
        failed = bool(error) or last is None or last.failed
        limited = None
        if failed and last is not None:
            over = last.api_error_status == TOO_MANY_REQUESTS
            limited = self._limit or (Limited() if over else None)
        found = [bytes(each.structured_output) for each in self._results]
        given = next(filter(None, reversed(found)), b"")
        return TurnOutcome(
            text=text[-SHOWN_TEXT:],
            failed=failed,
            outcome=error or (last.outcome if last is not None else "no_result"),
            cost_usd=last.total_cost_usd if last is not None else 0.0,
            session=last.session_id or None if last is not None else None,
            result=structured_result(text, given),
            denied=tuple(denied[:50]),
            limited=limited,
            undrained=undrained,
            sandbox=self.sandbox,
        )


async def _follow(messages: Messages, seen: _Seen, arbiter: TurnArbiter) -> None:
    with suppress(LinkClosed):  # the turn gets the error too
        async for message in messages:
            seen.observe(message)
            try:
                await arbiter.observe(message)
            except QuarterdeckError as error:
                # What the CLI has decided by itself: it cannot be undone, and the turn goes on.
                log.warning("a decision of the CLI is not recorded: %s", error)


async def _drain(agent: Agent, seen: _Seen, seconds: float) -> int:
    """Wait until the turn's background tasks have ended; gives how many have not, in that time."""
    background = seen.background
    with anyio.move_on_after(seconds):
        while not background.quiet or agent.state in _BUSY:
            busy = bool(background.running) or agent.state in _BUSY
            if not await background.change(1.0 if busy else IDLE_SECONDS) and not busy:
                break
    # Let the follower see what came last.
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    return len(background.running)
