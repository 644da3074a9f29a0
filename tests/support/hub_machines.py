"""Machines in the hand of a test: what the hub asks of them, and runs that say what it wants."""

from __future__ import annotations

import json
from typing import Any

import anyio
from msgspec import Raw

from quarterdeck.domain.ids import new_id
from quarterdeck.hub.api import HubApi
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.journal.base import Journal
from quarterdeck.protocol.commands import SendPrompt
from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.protocol.sessions import Origin, SessionSpec
from support import lines


class TestRun:
    """A run: a port for the hub, and a CLI for the test."""

    __test__ = False

    def __init__(self, machines: TestMachines, run: str, session: str, said: int = 0) -> None:
        self.machines = machines
        self.run = run
        self.session = session
        self.said = said
        self.acknowledged = said
        self.written: dict[int, bytes] = {}
        self.stops: list[bool] = []
        self.transcripts_wanted: list[tuple[str | None, tuple[str, ...], tuple[str, ...]]] = []
        self.recalls: list[TranscriptQuery] = []
        self.forgotten = False
        self._read = 0
        self._wrote = anyio.Event()

    # the hub's side

    def write(self, number: int, line: bytes) -> None:
        if number in self.written:
            assert self.written[number] == line, "a number stands for one line"
        self.written[number] = line
        self._wrote.set()

    async def wait_for_write(self) -> None:
        """Wait until something is written that was not read yet."""
        while max([0, *self.written]) <= self._read:
            self._wrote = anyio.Event()
            await self._wrote.wait()

    def acknowledge(self, upto: int) -> None:
        self.acknowledged = max(self.acknowledged, upto)

    def stop(self, *, force: bool = False) -> None:
        self.stops.append(force)

    def forget(self) -> None:
        self.forgotten = True

    def unwritten(self) -> dict[int, bytes]:
        return {number: line for number, line in self.written.items() if number > self._read}

    def read_transcript(self, wanted: TranscriptQuery) -> None:
        self.transcripts_wanted.append((wanted.cli_session, wanted.known, wanted.prompts))
        self.recalls.append(wanted)

    # the test's side

    @property
    def owner(self) -> ProcessEvents:
        return ProcessEvents(self.machines.hub._sessions[self.session])

    def read(self) -> list[dict[str, Any]]:
        """What was written since the last call."""
        fresh = [number for number in sorted(self.written) if number > self._read]
        self._read = max([self._read, *fresh])
        return [json.loads(self.written[number]) for number in fresh]

    async def say(self, *said: bytes) -> None:
        """Say lines, and check that they were acknowledged."""
        first = self.said + 1
        self.said += len(said)
        await self.owner.run_said(self.run, first, [line.rstrip(b"\n") for line in said])
        assert self.acknowledged >= self.said or self.forgotten

    async def greet(self, version: str = "2.1.325", directory: str = "/work") -> None:
        """Start, and answer `initialize`."""
        await self.owner.run_started(self.run, 42, version, directory)
        (greeting,) = self.read()
        assert greeting["request"]["subtype"] == "initialize"
        await self.say(lines.success_answer(greeting["request_id"]))

    async def end(self, reason: str = "It exited.", **more: Any) -> None:
        """End the process."""
        self.said += 1
        await self.owner.run_ended(self.run, RunEnd(number=self.said, reason=reason, **more))

    async def take_prompt(self, version: str = "2.1.325") -> str:
        """Begin the turn of the prompt that was written last."""
        (line,) = [line for line in self.read() if line["type"] == "user"]
        uuid: str = line["uuid"]
        await self.say(lines.init(version, uuid=f"init-{uuid}"), lines.echo(uuid))
        return uuid


class TestMachines:
    """Where runs are started."""

    __test__ = False

    def __init__(self) -> None:
        self.hub: Hub
        self.runs: list[TestRun] = []
        self.started: list[tuple[SessionSpec, Origin]] = []

    def start(self, run: str, session: str, spec: SessionSpec, origin: Origin) -> TestRun:
        self.started.append((spec, origin))
        self.runs.append(TestRun(self, run, session))
        return self.runs[-1]

    def attach(self, run: str, session: str, machine: str, *, said: int) -> TestRun:
        self.runs.append(TestRun(self, run, session, said))
        return self.runs[-1]


class MachineBench:
    """A hub for the contract suite, and its processes in the hand of the suite.

    `hub` is the real one, or a client of it.
    """

    def __init__(self, hub: HubApi, machines: TestMachines) -> None:
        self.hub = hub
        self._machines = machines
        self._greeted: set[str] = set()
        self._working: set[str] = set()

    async def ask(self, session: str) -> str:
        """Its CLI asks for a permission; gives the ask's id."""
        run = await self._started(session)
        await run.say(lines.asks_permission("q1"))
        (card,) = await self.hub.asks(session=session)
        return card.opened.ask

    async def end(self, session: str) -> None:
        """Its CLI ends."""
        await self._run(session).end()

    async def write(self, session: str, text: str) -> None:
        """Its model generates a piece of a message, in a turn."""
        run = await self._started(session)
        if run.run not in self._working:
            self._working.add(run.run)
            await self.hub.submit(SendPrompt(session=session, prompt="w", content=Raw(b'"x"')))
            await run.take_prompt()
        await run.say(lines.delta(text, new_id()))

    async def say(self, session: str, text: str) -> None:
        """The message is complete."""
        await self._run(session).say(lines.assistant(text, new_id()))

    async def _started(self, session: str) -> TestRun:
        run = self._run(session)
        if run.run not in self._greeted:
            self._greeted.add(run.run)
            await run.greet()
        return run

    def _run(self, session: str) -> TestRun:
        return [run for run in self._machines.runs if run.session == session][-1]


def hub_with(journal: Journal, **more: Any) -> tuple[Hub, TestMachines]:
    """A hub whose machines are the test's."""
    machines = TestMachines()
    hub = Hub(journal, lambda token: None, machines=machines, **more)
    machines.hub = hub
    return hub, machines
