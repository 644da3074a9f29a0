"""A hub, a runner and the network between them, each a process or a socket that can be killed.

The hub is `fault_hub`, the runner `fault_runner`, the CLIs are `fault_cli`: all real code in real
processes, killed with SIGKILL. A `World` outlives many schedules: what was killed is started again.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import anyio
import anyio.abc
import msgspec

from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.events import AnyEvent
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.fault_hub import Question, Reply, Row
from support.fault_nursery import Child, Nursery
from support.processes import Processes
from support.relay import Relay, relay_to

TESTS = Path(__file__).parents[1]

_event: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_reply = msgspec.json.Decoder(Reply)


class HubGone(Exception):
    """The hub was killed before it answered."""


class Refusal(Exception):
    """The hub answered with an error; `kind` is its class, `code` its word for programs."""

    def __init__(self, reply: Reply) -> None:
        self.kind = reply.error
        self.code = reply.code
        super().__init__(f"{reply.error}: {reply.text}")


class World:
    """What a schedule plays with."""

    beats = 24
    """Fewer steps has a turn of a CLI."""

    def __init__(self, folder: Path, nursery: Nursery, processes: Processes, link: Relay) -> None:
        self.folder = folder
        self.link = link
        self.token_file = folder / "token"
        self.journal = folder / "journal.db"
        self.runner: Child | None = None
        self._nursery = nursery
        self._processes = processes
        self._hub: Child | None = None
        self._children: list[Child] = []
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._count = 0
        self._group: anyio.abc.TaskGroup

    async def _start(self, what: str, log: Path, *arguments: object) -> Child:
        child = await self._nursery.start(self._processes, what, log, *arguments)
        self._children.append(child)
        return child

    # --- the hub -----------------------------------------------------------------------------

    async def start_hub(self) -> None:
        """Start a hub on the journal, and wait until it serves."""
        self._hub = hub = await self._start(
            "hub", self.folder / "hub.log", self.journal, self.token_file
        )
        with anyio.fail_after(SECONDS):
            self.link.target = int(await hub.stdout.readline())
        self._group.start_soon(self._listen, hub)

    async def kill_hub(self, number: int = signal.SIGKILL) -> None:
        """End the hub at once, whatever it is doing."""
        hub, self._hub = self._hub, None
        await _end(hub, number)

    async def _listen(self, hub: Child) -> None:
        while (line := await hub.stdout.readline()).endswith(b"\n"):
            reply = _reply.decode(line)
            future = self._waiting.pop(reply.id, None)
            if future is not None and not future.done():
                future.set_result(reply)
        if self._hub is hub:
            self._hub = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(HubGone())
        self._waiting.clear()

    async def _ask(self, question: Question) -> Reply:
        hub = self._hub
        if hub is None or hub.gone:
            raise HubGone
        self._count += 1
        question.id = self._count
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = future
        try:
            hub.stdin.write(msgspec.json.encode(question) + b"\n")
            with anyio.fail_after(SECONDS):
                reply = await future
        except ConnectionError:
            raise HubGone from None
        finally:
            self._waiting.pop(question.id, None)
        if reply.error is not None:
            raise Refusal(reply)
        return reply

    async def submit(self, command: AnyCommand) -> Outcome:
        """Have the hub do something. Raises `HubGone`, or what the hub said as a `Refusal`."""
        reply = await self._ask(Question(0, submit=command))
        assert reply.outcome is not None
        return reply.outcome

    async def view(self, session: str) -> SessionView:
        """A session as the hub sees it."""
        reply = await self._ask(Question(0, view=session))
        assert reply.view is not None
        return reply.view

    async def events(self, session: str, after: int = 0) -> list[tuple[Row, AnyEvent]]:
        """The events of a session after a number."""
        found: list[tuple[Row, AnyEvent]] = []
        while True:
            after = found[-1][0].seq if found else after
            reply = await self._ask(Question(0, events=session, after=after))
            if not reply.rows:
                return found
            found += [(row, _event.decode(row.event)) for row in reply.rows]

    async def disk_full(self, full: bool) -> None:
        """Leave the hub no room for another byte, or give it room again."""
        await self._ask(Question(0, disk_full=full))

    # --- the runner --------------------------------------------------------------------------

    async def start_runner(self) -> None:
        """Start a runner; it dials the hub through the network."""
        url = f"ws://127.0.0.1:{self.link.port}"
        self.runner = await self._start(
            "runner",
            self.folder / "runner.log",
            self.folder / "runner",
            url,
            self.token_file,
        )

    async def kill_runner(self, number: int = signal.SIGKILL) -> None:
        """End the runner at once."""
        await _end(self.runner, number)
        self.runner = None

    # --- sessions ----------------------------------------------------------------------------

    def spec(self, name: str, seed: int, sandbox: SandboxMode = "off") -> SessionSpec:
        """A session whose CLI talks by this seed; its records are in `records(name)`."""
        place = self.records(name)
        place.mkdir(parents=True)
        config = place / "config.json"
        session_id = str(UUID(int=seed, version=4))
        config.write_text(
            json.dumps(
                {
                    "seed": seed,
                    "folder": str(place),
                    "session_id": session_id,
                    "beats": self.beats,
                }
            )
        )
        program = place / "claude.sh"
        command = [sys.executable, "-IS", str(TESTS / "support" / "fault_cli.py"), str(config)]
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
        manifest = {"name": "@anthropic-ai/claude-code", "version": "2.1.325"}
        (place / "package.json").write_text(json.dumps(manifest))
        env = {"CLAUDE_CONFIG_DIR": str(place / "config")}
        return SessionSpec(directory=str(place), claude=str(program), env=env, sandbox=sandbox)

    def records(self, name: str) -> Path:
        """Where the CLIs of a session write down what they write and read."""
        return self.folder / "cli" / name

    # --- inside ------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hub and runner, ended with the block."""
        self.token_file.write_text(secrets.token_urlsafe(24))
        async with anyio.create_task_group() as self._group:
            try:
                await self.start_hub()
                await self.start_runner()
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.kill_runner(signal.SIGTERM)
                    await self.kill_hub(signal.SIGTERM)
                self._group.cancel_scope.cancel()
                for child in self._children:
                    child.close()


async def _end(process: Child | None, number: int) -> None:
    if process is None:
        return
    process.send_signal(number)
    try:
        with anyio.fail_after(SECONDS):
            await process.wait()
    except TimeoutError:
        process.send_signal(signal.SIGKILL)
        raise
    finally:
        process.stdin.close()


@asynccontextmanager
async def world(folder: Path, nursery: Nursery, processes: Processes) -> AsyncIterator[World]:
    """A world while the block runs."""
    async with relay_to() as link:
        one = World(folder, nursery, processes, link)
        async with one.running():
            yield one
