"""The tool calls of the past, out of the journal: what was asked for, where, and what became of it.

Every call passes the hook, and every line of the CLI is in the journal: so is every call, with its
whole input. What a rule needs to know of its place and time is put together from the events around
it. Above is `service`; below are the journal and the CLI's lines.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio.lowlevel
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.journal.base import Journal
from quarterdeck.policy.decide import Call
from quarterdeck.policy.facts import MAIN, SUBAGENT, Facts
from quarterdeck.policy.needs import Context
from quarterdeck.policy.replay import PastCall
from quarterdeck.protocol.events import (
    AskOpened,
    Decided,
    Event,
    RunStarted,
    RunStarting,
    Said,
    SessionCreated,
    SpecChanged,
    TurnEnded,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire import codec
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.hooks import PreToolUseInput
from quarterdeck.wire.requests import CanUseTool, HookCallback

PAGE = 2000
MOST_CALLS = 20_000
"""So many calls are looked at; a month of a busy team has fewer."""
MOST_BYTES = 64 * 1024 * 1024
"""Of their inputs, which are all in memory during a replay."""

AT_ONCE = 50
"""Events that are looked at before others may go on."""

_SIGNS = (b'"PreToolUse"', b'"can_use_tool"')


class PastCalls:
    """Calls of the past. `truncated`: there were more."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.truncated = False
        self.calls: list[PastCall] = []
        self._bytes = 0

    async def read(self, since: int, session: str | None = None) -> list[PastCall]:
        """The calls since a time in ms, newest session first, of one session or of all."""
        async for id_, updated in self._sessions(session):
            if updated >= since and not self.truncated:
                await self._read_session(id_, since)
        return self.calls

    async def _sessions(self, only: str | None) -> AsyncIterator[tuple[str, int]]:
        if only is not None:
            view = await self._journal.summary(only)
            if view is not None:
                yield only, view.updated
            return
        after: str | None = None
        while page := await self._journal.summaries(after=after, limit=200, archived=None):
            after = page[-1].session
            for view in page:
                yield view.session, view.updated

    async def _read_session(self, session: str, since: int) -> None:
        reader = _Reader(session)
        seq = 0
        while page := await self._journal.read(session, after=seq, limit=PAGE):
            seq = page[-1].seq
            for number, stored in enumerate(page):
                reader.add(stored.at, stored.event)
                if number % AT_ONCE == 0:
                    await anyio.lowlevel.checkpoint()
        for past in reader.calls.values():
            if past.at < since:
                continue
            self._bytes += len(bytes(past.call.input))
            if len(self.calls) >= MOST_CALLS or self._bytes > MOST_BYTES:
                self.truncated = True
                return
            self.calls.append(past)


class _Reader:
    """Reads one session's events."""

    def __init__(self, session: str) -> None:
        self.calls: dict[str, PastCall] = {}
        self._session = session
        self._spec = SessionSpec(directory="/")
        self._user = ""
        self._machine = ""
        self._directory: str | None = None
        self._cost = 0.0
        self._agents: dict[str, str] = {}

    def add(self, at: int, event: Event) -> None:
        """Take in the next event."""
        match event:
            case SessionCreated(spec=spec, by=by, person=person):
                self._spec, self._user = spec, person or by
            case SpecChanged(spec=spec):
                self._spec = spec
            case RunStarting(machine=machine):
                self._machine = machine or "local"
            case RunStarted(directory=directory):
                self._directory = directory or self._directory
            case TurnEnded(cost_usd=cost):
                self._cost += cost
            case Said(line=line):
                self._read_line(at, bytes(line))
            case AskOpened(tool_use_id=str(id_), branch=branch) if id_ in self.calls:
                self._settle(id_, branch, asked=True)
            case Decided(tool_use_id=str(id_), branch=branch) if id_ in self.calls:
                self._settle(id_, branch, decided=event)
            case _:
                pass

    def _settle(
        self, id_: str, branch: str | None, *, asked: bool = False, decided: Decided | None = None
    ) -> None:
        past = self.calls[id_]
        call = past.call
        if branch is not None:
            call = replace(call, facts=replace(call.facts, branch=branch))
        past = replace(past, call=call, asked=past.asked or asked)
        if decided is not None:
            past = replace(past, done=decided.verdict, by=decided.by, rule=decided.rule)
        self.calls[id_] = past

    def _read_line(self, at: int, line: bytes) -> None:
        if not any(sign in line for sign in _SIGNS):
            return
        match codec.from_cli(line):
            case ControlRequest(request=HookCallback(hook_input=PreToolUseInput() as seen)) if (
                seen.tool_use_id
            ):
                if seen.agent_id and seen.agent_type:
                    self._agents[seen.agent_id] = seen.agent_type
                self._call(
                    at,
                    seen.tool_use_id,
                    seen.tool_name,
                    seen.tool_input,
                    mode=seen.permission_mode,
                    cwd=seen.cwd or None,
                    agent=seen.agent_id,
                )
            case ControlRequest(request=CanUseTool() as request) if request.tool_use_id:
                id_ = request.tool_use_id
                if id_ not in self.calls:
                    self._call(at, id_, request.tool_name, request.input, agent=request.agent_id)
                self.calls[id_] = replace(
                    self.calls[id_], call=replace(self.calls[id_].call, cli_asks=True)
                )
            case _:
                pass

    def _call(
        self,
        at: int,
        id_: str,
        tool: str,
        given: Raw,
        *,
        mode: str | None = None,
        cwd: str | None = None,
        agent: str | None = None,
    ) -> None:
        spec = self._spec
        folder = self._directory or spec.directory
        facts = Facts(
            now=at,
            machine=self._machine,
            project=spec.project or "",
            directory=spec.directory,
            user=self._user,
            mode=mode or spec.mode or "default",
            origin=SUBAGENT if agent else MAIN,
            agent=self._agents.get(agent or ""),
            cost_usd=self._cost,
        )
        context = Context(
            cwd=cwd or folder,
            home=spec.env.get("HOME"),
            directories=spec.add_dirs,
            settings=folder,
        )
        self.calls[id_] = PastCall(
            session=self._session,
            at=at,
            call=Call(tool=tool, input=given, facts=facts, context=context),
            done="",
            auto_approve=spec.auto_approve,
            skip_permissions=spec.skip_permissions,
        )
