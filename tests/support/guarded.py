"""Hubs whose clock the test moves: in memory, and with a runner and fake CLIs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.links.subprocess import StopSteps
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.events import Alarmed, Event
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.views import AskView
from quarterdeck.runner import Times
from quarterdeck.testing.fake import Step
from support.bounds import SECONDS
from support.hub_house import until
from support.runners import running, spec_of
from support.scripted_hub import TOKEN

MACHINE = "a-machine"
NOON = 1_800_000_000.0
STEPS = StopSteps(input=0.3, term=0.3, kill=5.0, orphans=0.2, silent=0.3, drain=0.2)
TIMEOUTS = Timeouts(after_tool=600, result=900, answer=60, exit=60)


class Clock:
    """Time stands still until it is moved."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        """Time goes on."""
        self.now += seconds


async def tick(hub: Hub) -> None:
    """What the hub's clock does each second."""
    for session in hub._sessions:
        await ProcessEvents(session).tick()


class Guarded:
    """A hub, a runner in the same loop, and fake CLIs."""

    def __init__(self, hub: Hub, folder: Path, clock: Clock) -> None:
        self.hub = hub
        self.folder = folder
        self.clock = clock

    async def new(self, script: Sequence[Step], *, resumes: str | None = None, **spec: Any) -> str:
        """A session whose CLI plays this script, with a prompt; it may resume a conversation."""
        given = spec_of(self.folder / "work", script)
        kept = {name: getattr(given, name) for name in ("directory", "claude", "env")}
        made = type(given)(**{**kept, **spec}, machine=MACHINE)
        command = CreateSession(spec=made, prompt=Raw(b'"hello"'), cli_session=resumes, by="test")
        return (await self.hub.submit(command)).session

    async def pass_time(self, seconds: float) -> None:
        """Time goes on, and the hub's clock ticks."""
        self.clock.move(seconds)
        await tick(self.hub)

    async def until(self, session: str, holds: Callable[[SessionView], bool]) -> SessionView:
        """Wait until the session is as wanted."""
        return await until(self.hub, session, holds)

    async def said(self, session: str, word: bytes) -> None:
        """Wait until the CLI has said this."""
        with anyio.fail_after(SECONDS):
            after = 0
            async for batch in self.hub.follow({session: after}):
                if any(b'"said"' in one.json and word in one.json for one in batch):
                    return

    async def ask(self, session: str) -> AskView:
        """Wait for an open question."""
        view = await self.until(session, lambda view: bool(view.asks))
        return next(iter(view.asks.values()))

    async def events(self, session: str) -> list[Event]:
        """All that happened."""
        return [stored.event for stored in await self.hub.events(session, limit=5000)]

    async def alarms(self, session: str) -> list[tuple[str, str]]:
        """The alarms that there were, each with what was done."""
        found = [e for e in await self.events(session) if isinstance(e, Alarmed)]
        return [(alarm.alarm, alarm.act) for alarm in found]


@asynccontextmanager
async def guarded(folder: Path, clock: Clock, **more: Any) -> AsyncIterator[Guarded]:
    """A hub and a runner, while the block runs. Again in the same folder: a restart of both."""
    journal = await SqliteJournal.open(folder / "journal.db", clock=clock)
    options = {"timeouts": TIMEOUTS} | more
    hub = Hub(journal, lambda given: MACHINE if given == TOKEN else None, now=clock, **options)
    try:
        async with hub.run(), serve_endpoint(hub.runners) as port:
            url = f"http://127.0.0.1:{port}"
            async with running(folder / "runner", url, times=Times(stop=STEPS)):
                with anyio.fail_after(SECONDS):
                    while not any(machine.connected for machine in await hub.machines()):  # noqa: ASYNC110 - the hub tells no event
                        await anyio.sleep(0.01)
                yield Guarded(hub, folder, clock)
    finally:
        await journal.close()
