"""Agents of a hub in memory, in the hand of a test, and the tools with which they direct others."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from quarterdeck.fronts.mcp import AgentLimits, AgentTools
from quarterdeck.fronts.mcp.looks import SessionInfo
from quarterdeck.fronts.mcp.tools import Arguments, Spawn
from quarterdeck.hub.hub import Hub
from quarterdeck.protocol.commands import CreateSession, SendPrompt
from quarterdeck.protocol.machine_requests import Changes
from quarterdeck.protocol.search import Hit, Hits, Search, Snippet, TextKind
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.hub_machines import TestMachines, TestRun


class Family:
    """A hub with agents, and what they can do."""

    def __init__(self, hub: Hub, machines: TestMachines) -> None:
        self.hub = hub
        self.machines = machines
        self.found: list[str] = []
        """The sessions in which every search finds something."""
        self.tools = AgentTools(hub, changes=self._changes, search=self._search)

    def limit(self, **limits: int) -> None:
        """Have other limits."""
        self.tools.limits = AgentLimits(**limits)

    async def person(self, **spec: Any) -> str:
        """A session that a person starts, with an agent that may start others."""
        made = SessionSpec(**{"directory": "/work", "agents": True, **spec})
        return await self._begun(
            (await self.hub.submit(CreateSession(spec=made, by="ada"))).session
        )

    async def spawn(self, caller: str, prompt: str = "go", **members: Any) -> str:
        """An agent starts another, which is ready then."""
        made = await self.call(caller, Spawn(prompt=prompt, **members))
        assert isinstance(made, SessionInfo)
        return await self._begun(made.session)

    async def call(self, caller: str, arguments: Arguments) -> object:
        """An agent uses a tool."""
        return await self.tools.call(await self.hub.session(caller), arguments)

    async def view(self, session: str) -> SessionView:
        """A session now."""
        return await self.hub.session(session)

    def run(self, session: str) -> TestRun:
        """The last run of a session."""
        return [run for run in self.machines.runs if run.session == session][-1]

    async def turn(self, session: str, text: str = "done", cost: float = 0.0) -> None:
        """A turn with this answer and cost, of a prompt that was sent, or is sent now."""
        run = self.run(session)
        if not any(b'"type":"user"' in line for line in run.unwritten().values()):
            await self.hub.submit(
                SendPrompt(session=session, prompt=f"p{run.said}", content=Raw(b'"x"'), by="ada")
            )
        uuid = await run.take_prompt()
        await run.say(
            lines.assistant(text, f"a-{uuid}"), lines.result(f"r-{uuid}", cost=cost, result=text)
        )

    async def _begun(self, session: str) -> str:
        await self.run(session).greet()
        return session

    async def _changes(self, session: str) -> Changes:
        return Changes(directory=f"/work/{session}", base="HEAD", text="x" * 100_000)

    async def _search(self, wanted: Search) -> Hits:
        hits = tuple(
            Hit(
                session=session,
                seq=1,
                at=1,
                kind=TextKind.ANSWER,
                snippet=Snippet(text=wanted.words, ranges=()),
                tool=None,
                name="",
                project=None,
                machine="",
                directory="",
            )
            for session in self.found
        )
        return Hits(hits=hits, next=None, behind=0)
