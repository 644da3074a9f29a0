"""One run of `quarterdeck-claude`: a program, the real CLI, and the hub.

Owns the tasks that move lines between the three, and the end: when the CLI's input ends, what
happens when the program or the hub is gone, and the exit code. What goes where is the router's
business.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import LaunchError, LinkClosed, LinkRefused
from quarterdeck.domain.exits import Exit
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.program.acts import Act
from quarterdeck.program.arguments import CommandLine
from quarterdeck.program.hub_link import HubLink
from quarterdeck.program.pipes import ProgramPipes
from quarterdeck.program.router import ProgramAnswer, Routed, Router
from quarterdeck.protocol.coded_texts import coded_exit, coded_text
from quarterdeck.protocol.runner_frames import Started
from quarterdeck.wire.line_reader import LineReader, OversizedLine

FLUSH_SECONDS = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
REFUSED_EXIT = 1


class Bridge:
    """Moves lines until the CLI has ended. `run` gives the exit code, as Python has it."""

    def __init__(self, line: CommandLine, in_: int = 0, out: int = 1) -> None:
        self.router = Router(line.given)
        self._line = line
        self._descriptors = in_, out
        self._to_cli: list[bytes] = []
        self._to_program: list[bytes] = []
        self._cli_news = asyncio.Event()
        self._program_news = asyncio.Event()
        self._cli_room = asyncio.Event()
        self._program_room = asyncio.Event()
        self._cli_room.set()
        self._program_room.set()
        self._stopping = asyncio.Event()
        self._signal = signal.SIGTERM
        self._force = False
        self._hub: HubLink | None = None
        self._link: SubprocessLink | None = None

    # --- what the hub wants ----------------------------------------------------------------------

    def take_hub(self, line: bytes) -> None:
        """A line of the hub for the CLI."""
        self._pass_on(self.router.from_hub(line))

    def stop(self, force: bool) -> None:
        """The session is to end."""
        self._force = self._force or force
        self._stopping.set()

    # --- the run ---------------------------------------------------------------------------------

    async def run(self, command: Sequence[str], hub: HubLink) -> int:
        """Start the CLI and serve it to its end. Raises `LinkRefused` if the hub does not want it,
        before the CLI is started.
        """
        self._hub = hub
        code = REFUSED_EXIT
        refused: list[LinkRefused] = []
        started = False

        async def connect() -> None:
            try:
                await hub.serve()
            except LinkRefused as error:
                refused.append(error)
                hub.ready.set()
                self.stop(True)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connect)
            await hub.ready.wait()
            if not refused:
                started = True
                try:
                    code = await self._run_cli(command, hub)
                except LaunchError as error:
                    hub.end(coded_exit(TextCode.NOT_STARTED, detail=str(error)))
                    _write_stderr(f"quarterdeck-claude: {error}\n".encode())
                with anyio.move_on_after(0 if refused else hub.farewell_seconds):
                    await hub.delivered.wait()
            tasks.cancel_scope.cancel()
        if refused and not started:
            raise refused[0]
        if refused:
            _write_stderr(f"quarterdeck-claude: the agent was ended: {refused[0]}\n".encode())
        return code

    async def _run_cli(self, command: Sequence[str], hub: HubLink) -> int:
        # Not before the hub is there: what is read here is lost for a CLI that runs without it.
        self._pipes = await ProgramPipes.open(*self._descriptors)
        link = self._link = await SubprocessLink.start(
            command,
            self._line.argv,
            env=self._line.env,
            inherit_stderr=True,
            dies_with_us=True,
        )
        unread = CodedText(code=TextCode.NOT_READ_TO_END)
        closed = LinkClosed(coded_text(unread), coded=unread)
        try:
            async with anyio.create_task_group() as tasks:
                for task in (
                    self._read_program,
                    self._write_cli,
                    self._write_program,
                    self._watch_program,
                    self._watch_signals,
                    self._end_on_request,
                ):
                    tasks.start_soon(task)
                closed = await self._read_cli(link, hub)
                await self._flush_program()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await link.close()
                hub.end(Exit.of(closed))
                await self._pipes.finish(FLUSH_SECONDS)
        return closed.exit_code if closed.exit_code is not None else REFUSED_EXIT

    async def _read_cli(self, link: SubprocessLink, hub: HubLink) -> LinkClosed:
        reader = LineReader()
        while True:
            try:
                data = await link.receive()
            except LinkClosed as closed:
                if isinstance(rest := reader.end(), bytes):
                    self._pass_on(self.router.from_cli(rest))
                return closed
            for line in reader.feed(data):
                if isinstance(line, OversizedLine):
                    _write_stderr(b"quarterdeck-claude: a line of the CLI is too long\n")
                else:
                    self._pass_on(self.router.from_cli(line))
            await hub.room.wait()
            await self._program_room.wait()

    def _pass_on(self, routed: Routed) -> None:
        """Queue what was routed. Nothing waits, so that lines stay in the router's order."""
        assert self._hub is not None
        if routed.cli:
            self._to_cli += routed.cli
            self._cli_news.set()
            self._cli_room.clear()
        if routed.program:
            self._to_program += routed.program
            self._program_news.set()
            self._program_room.clear()
        for each in routed.hub:
            match each:
                case bytes():
                    self._hub.say([each])
                case Act():
                    self._hub.act(each)
                case ProgramAnswer(request_id=request_id, response=response):
                    self._hub.answer(request_id, response)
        for warning in routed.warnings:
            _write_stderr(f"quarterdeck-claude: {warning}\n".encode())
        self._hub.keep_answers(self.router.is_open)
        if self.router.program_spoke and self._link is not None:
            self._hub.start(Started(pid=self._link.pid, directory=str(Path.cwd())))
        if self.router.may_end_input:
            self._cli_news.set()

    # --- tasks -----------------------------------------------------------------------------------

    async def _read_program(self) -> None:
        reader = LineReader()
        while data := await self._pipes.read():
            for line in reader.feed(data):
                if isinstance(line, bytes):
                    self._pass_on(self.router.from_program(line))
            await self._cli_room.wait()
        if isinstance(rest := reader.end(), bytes):
            self._pass_on(self.router.from_program(rest))
        self._pass_on(self.router.program_ended())

    async def _write_cli(self) -> None:
        assert self._link is not None
        with suppress(LinkClosed):  # who reads hears of it
            while True:
                await self._cli_news.wait()
                self._cli_news.clear()
                lines, self._to_cli = self._to_cli, []
                if lines:
                    await self._link.send(b"".join(line + b"\n" for line in lines))
                self._cli_room.set()
                if self.router.may_end_input and not self._to_cli:
                    await self._link.end_input()
                    return

    async def _write_program(self) -> None:
        while True:
            await self._program_news.wait()
            await self._flush_program()

    async def _flush_program(self) -> None:
        self._program_news.clear()
        lines, self._to_program = self._to_program, []
        if lines:
            await self._pipes.write(b"".join(line + b"\n" for line in lines))
        self._program_room.set()

    async def _watch_program(self) -> None:
        """The program is gone: nobody hears the CLI any more, and it ends with all it started."""
        await self._pipes.wait_gone()
        self.stop(True)

    async def _watch_signals(self) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            async for number in signals:
                self._signal = number
                self.stop(True)

    async def _end_on_request(self) -> None:
        assert self._link is not None
        await self._stopping.wait()
        if self._force:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._link.pid, self._signal)
        else:
            await self._link.end_input()
        await self._link.close()


def _write_stderr(data: bytes) -> None:
    with suppress(OSError):
        os.write(2, data)
