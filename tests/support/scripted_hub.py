"""A hub in the hand of a test: a real WebSocket server that speaks the frames of a runner's hub.

It keeps what every run said by number, checks what may never happen (a hole without a `Gap`, a
number with two contents, lines after the end), and acknowledges as the test wants it to.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from quarterdeck.protocol.machine_requests import AnyMachineRequest
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Connection,
    Ended,
    Gap,
    Header,
    Hello,
    Lines,
    MachineRequest,
    Refused,
    Reply,
    RunnerHeader,
    Start,
    Started,
    Stop,
    Transcript,
    TranscriptQuery,
    Vitals,
    Welcome,
    Write,
    Written,
    frame,
    read_runner_frame,
)
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.sessions import Origin, SessionSpec
from support.bounds import SECONDS

TOKEN = "a-token-for-the-runner"
FRAME_LIMIT = 256 * 1024 * 1024


class HubRun:
    """What the hub knows of one run."""

    def __init__(self) -> None:
        self.lines: dict[int, bytes] = {}
        self.upto = 0
        self.gaps: list[int] = []
        self.ended: Ended | None = None
        self.started: list[Started] = []
        self.written: list[int] = []
        self.frames = 0
        self.connections = 0
        self.socket: ServerConnection | None = None
        self.greeted = False
        self.to_write: list[bytes] = []
        self.transcripts: list[tuple[Transcript, list[bytes]]] = []
        self.network: list[Connection] = []

    @property
    def said(self) -> list[bytes]:
        return [self.lines[number] for number in sorted(self.lines)]


class ScriptedHub:
    """See `scripted_hub`."""

    def __init__(self) -> None:
        self.port = 0
        self.hellos: list[Hello] = []
        self.refused: dict[str, str] = {}
        self.vitals: list[Vitals] = []
        self.replies: dict[str, tuple[bool, bytes]] = {}
        self.runs: defaultdict[str, HubRun] = defaultdict(HubRun)
        self.faults: list[str] = []
        self.closes: list[tuple[int | None, str]] = []
        self.strangers = 0
        self.acknowledging = True
        self.welcome = Welcome(hub="hub-1", protocol=PROTOCOL)
        self.machine: ServerConnection | None = None
        self.wanted: dict[str, Start] = {}
        self.unwanted: dict[str, Stop] = {}
        self._changed = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # --- what a test does ---

    async def until(self, holds: object, seconds: float = SECONDS) -> None:
        """Wait until `holds()` is true; look after each frame."""
        assert callable(holds)
        try:
            with anyio.fail_after(seconds):
                while not holds():
                    self._changed.clear()
                    with anyio.move_on_after(0.2):
                        await self._changed.wait()
        except TimeoutError:
            runs = {name: (run.upto, run.ended) for name, run in self.runs.items()}
            raise AssertionError(f"did not happen: {runs}, {self.faults}, {self.refused}") from None

    async def met(self) -> Hello:
        """The hello of the runner that is connected now."""
        await self.until(lambda: self.machine is not None)
        return self.hellos[-1]

    async def say(self, header: Header) -> None:
        """Send a frame on the machine's socket."""
        await self.met()
        assert self.machine is not None
        with suppress(ConnectionClosed):
            await self.machine.send(frame(header))

    async def start(
        self,
        run: str,
        spec: SessionSpec,
        origin: Origin | None = None,
        sandbox: SandboxRequest | None = None,
    ) -> None:
        """Start a run; again after each hello of a runner that does not have it."""
        start = Start(
            run=run, session=f"s-{run}", spec=spec, origin=origin or Origin(), sandbox=sandbox
        )
        self.wanted[run] = start
        await self.say(start)

    async def started(self, run: str) -> Started:
        await self.until(lambda: self.runs[run].started or run in self.refused)
        assert run not in self.refused, self.refused[run]
        return self.runs[run].started[-1]

    async def refusal(self, run: str) -> str:
        await self.until(lambda: run in self.refused)
        return self.refused[run]

    async def stop(self, run: str, *, force: bool = False) -> None:
        """Stop a run; again after each hello of a runner that still has it."""
        self.wanted.pop(run, None)
        self.unwanted[run] = Stop(run=run, force=force)
        await self.say(self.unwanted[run])

    async def write(self, run: str, *lines: bytes) -> None:
        """Give lines to a run: now, and again after each reconnect while they are not written."""
        known = self.runs[run]
        known.to_write += lines
        if known.socket is not None and known.greeted:
            first = len(known.to_write) - len(lines) + 1
            with suppress(ConnectionClosed):  # they are sent again
                for number in range(first, len(known.to_write) + 1):
                    data = frame(Write(number=number), [known.to_write[number - 1]])
                    await known.socket.send(data)

    async def request(self, request: AnyMachineRequest | bytes) -> tuple[bool, bytes]:
        """Send the runner a machine request; returns whether it was refused, and its answer."""
        await self.met()
        assert self.machine is not None
        id_ = f"request-{len(self.replies)}"
        line = request if isinstance(request, bytes) else msgspec.json.encode(request)
        await self.machine.send(frame(MachineRequest(request=id_), [line]))
        await self.until(lambda: id_ in self.replies)
        return self.replies[id_]

    async def recall(self, run: str, wanted: TranscriptQuery) -> tuple[str | None, list[bytes]]:
        """Have a transcript read; gives the session that it is of, and its lines."""
        known = self.runs[run]
        known.transcripts.clear()
        assert known.socket is not None
        await known.socket.send(frame(wanted))
        await self.until(lambda: known.transcripts and known.transcripts[-1][0].last)
        frames = known.transcripts
        return frames[-1][0].cli_session, [line for _, lines in frames for line in lines]

    async def ended(self, run: str, seconds: float = SECONDS) -> Ended:
        await self.until(lambda: self.runs[run].ended, seconds)
        ended = self.runs[run].ended
        assert ended is not None
        return ended

    def check(self) -> None:
        """That nothing happened that may never happen."""
        assert not self.faults

    # --- the server ---

    async def serve(self, socket: ServerConnection) -> None:
        request = socket.request
        assert request is not None
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.strangers += 1
            await socket.close(4003, "wrong token")
            return
        try:
            if request.path == "/runner":
                await self._serve_machine(socket)
            else:
                await self._serve_run(socket, request.path.removeprefix("/runner/runs/"))
        except ConnectionClosed as closed:
            if closed.rcvd is not None:
                self.closes.append((closed.rcvd.code, closed.rcvd.reason))
        self._changed.set()

    async def _serve_machine(self, socket: ServerConnection) -> None:
        try:
            while True:
                header, lines = await self._receive(socket)
                match header:
                    case Hello():
                        await socket.send(frame(self.welcome))
                        self.hellos.append(header)
                        self.machine = socket
                        await self._catch_up(socket, {report.run for report in header.runs})
                    case Refused():
                        self.refused[header.run] = header.reason
                    case Vitals():
                        self.vitals.append(header)
                    case Reply(request=request, refused=refused):
                        self.replies[request] = (refused, b"\n".join(lines))
                    case _:
                        self.faults.append(f"on the machine's socket: {header}")
                self._changed.set()
        finally:
            if self.machine is socket:
                self.machine = None

    async def _catch_up(self, socket: ServerConnection, has: set[str]) -> None:
        for run, start in self.wanted.items():
            known = self.runs[run]
            if run not in has and run not in self.refused and known.ended is None:
                await socket.send(frame(start))
        for run, stop in self.unwanted.items():
            if run in has:
                await socket.send(frame(stop))

    async def _serve_run(self, socket: ServerConnection, name: str) -> None:
        run = self.runs[name]
        run.connections += 1
        run.socket = socket
        next_number = run.upto + 1
        run.greeted = False
        await socket.send(frame(Ack(upto=run.upto)))
        try:
            while True:
                header, lines = await self._receive(socket)
                match header:
                    case Started():
                        run.started.append(header)
                    case Written(upto=upto):
                        run.written.append(upto)
                        if not run.greeted:
                            run.greeted = True
                            for number in range(upto + 1, len(run.to_write) + 1):
                                data = frame(Write(number=number), [run.to_write[number - 1]])
                                await socket.send(data)
                    case Gap(first=first):
                        run.gaps.append(first)
                        next_number = first
                    case Lines(first=first):
                        run.frames += 1
                        self._check_number(name, first, next_number)
                        for number, line in enumerate(lines, first):
                            self._keep(name, number, line)
                        next_number = first + len(lines)
                        run.upto = max(run.upto, next_number - 1)
                        await self._acknowledge(run, socket)
                    case Connection(number=number):
                        self._check_number(name, number, next_number)
                        run.network.append(header)
                        next_number = number + 1
                        run.upto = max(run.upto, number)
                        await self._acknowledge(run, socket)
                    case Ended(number=number):
                        self._check_number(name, number, next_number)
                        run.upto = number
                        run.ended = header
                        await self._acknowledge(run, socket)
                    case Transcript():
                        run.transcripts.append((header, lines))
                    case _:
                        self.faults.append(f"on a run's socket: {header}")
                self._changed.set()
        finally:
            if run.socket is socket:
                run.socket = None

    async def _acknowledge(self, run: HubRun, socket: ServerConnection) -> None:
        if self.acknowledging:
            await socket.send(frame(Ack(upto=run.upto)))

    async def acknowledge_all(self) -> None:
        """What was held back."""
        for run in self.runs.values():
            if run.socket is not None:
                await run.socket.send(frame(Ack(upto=run.upto)))

    def _check_number(self, name: str, first: int, expected: int) -> None:
        if first != expected:
            self.faults.append(f"{name}: number {first} came, and {expected} was due")

    def _keep(self, name: str, number: int, line: bytes) -> None:
        run = self.runs[name]
        if run.ended is not None:
            self.faults.append(f"{name}: {number} came after the end")
        if run.lines.setdefault(number, line) != line:
            self.faults.append(f"{name}: {number} came with another content")

    async def _receive(self, socket: ServerConnection) -> tuple[RunnerHeader, list[bytes]]:
        data = await socket.recv()
        assert isinstance(data, bytes)
        return read_runner_frame(data)


@asynccontextmanager
async def scripted_hub(hub: ScriptedHub | None = None) -> AsyncIterator[ScriptedHub]:
    """A hub while the block runs. Given one that was served before, it goes on at its port."""
    hub = hub or ScriptedHub()
    async with serve(
        hub.serve,
        "127.0.0.1",
        hub.port,
        compression=None,
        max_size=FRAME_LIMIT,
        close_timeout=0.5,
    ) as server:
        hub.port = next(iter(server.sockets)).getsockname()[1]
        yield hub
