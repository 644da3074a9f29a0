"""One run: a CLI process, and all that passes between it and the hub.

Owns the process, the numbers in both directions, and the run's socket. The `Runner` stands above
it; below it are `SubprocessLink`, the `Spool` and `hublink`. It never looks into a line.

Three things go on at once, and none waits for another: the process is read into the spool, the
hub's lines are written to the process, and a connection, whenever there is one, takes from the
spool and brings lines. So a hub that is away stops nothing, and a CLI that does not read does not
keep the hub's acknowledgements out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from quarterdeck.domain.errors import LinkClosed, LinkError, LinkRefused
from quarterdeck.domain.exits import Exit
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.protocol.runner_frames import (
    Ack,
    Ended,
    Gap,
    Lines,
    Recall,
    RunReport,
    Transcript,
    Write,
    Written,
)
from quarterdeck.runner.exit import kill_child
from quarterdeck.runner.hublink import Hub, HubSocket
from quarterdeck.runner.limits import MIB, Limits, Times
from quarterdeck.runner.segments import Kind
from quarterdeck.runner.start import Process
from quarterdeck.wire.line_reader import Line, LineReader, OversizedLine

log = logging.getLogger("quarterdeck.runner")

LAST_WORDS = 64 * MIB
"""What a CLI that is being stopped may say beyond the spool's bound, before it is killed."""


class Run:
    """A run, from its start until the hub has its end. `serve` does everything.

    Without a link it is one that an earlier runner left: only its last words are to be told.
    """

    def __init__(
        self, run: str, session: str, process: Process, hub: Hub, limits: Limits, times: Times
    ) -> None:
        self.run = run
        self.session = session
        self.spool = process.spool
        self.ended_at = process.ended_at or time.time()
        self._started = process.started
        self._link = process.link
        self._read_transcript = process.read_transcript
        self._release = process.release
        self._hub = hub
        self._limits = limits
        self._times = times
        self._accepted = self._written = self.spool.written
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queued = asyncio.Event()
        self._wanted: Recall | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._delivered = asyncio.Event()
        self._stopping = False
        self._forgotten = False

    @property
    def directory(self) -> str | None:
        """Where its process works."""
        return self._started.directory

    @property
    def live(self) -> bool:
        """Whether there is a process."""
        return self._link is not None and not self._over.is_set()

    @property
    def settled(self) -> bool:
        """Whether the hub has everything, or wants nothing more."""
        return self._delivered.is_set()

    @property
    def report(self) -> RunReport:
        """How far it is."""
        return RunReport(
            run=self.run,
            session=self.session,
            said=self.spool.last,
            written=self._written,
            ended=not self.live,
        )

    async def serve(self) -> None:
        """Do all that a run does. Returns when the process has ended and the hub has it all."""
        try:
            async with anyio.create_task_group() as group:
                if self._link is not None:
                    group.start_soon(self._run_process, self._link)
                group.start_soon(self._deliver)
                await self._delivered.wait()
                group.cancel_scope.cancel()
        finally:
            if self._link is not None:
                await self._link.close()
            self._release()
            self.spool.close()

    async def stop(self, *, force: bool = False) -> None:
        """End the process: its input first, then by signals; by force, kill all of it now."""
        if self._link is None or self._over.is_set():
            return
        self._stopping = True
        self._room.set()
        if force:
            await anyio.to_thread.run_sync(kill_child, self._link.pid)
        else:
            await self._link.end_input()
        # An end that comes by itself is read to the last byte; `close` would be in a hurry.
        with anyio.move_on_after(self._times.stop.input):
            await self._over.wait()
        await self._link.close()

    async def wait_ended(self) -> None:
        """Wait until the process has ended and its end has its number."""
        if self._link is not None:
            await self._over.wait()

    async def wait_delivered(self) -> None:
        """Wait until the hub has everything."""
        await self._delivered.wait()

    def forget(self) -> None:
        """The hub wants nothing more of it, once it has ended."""
        self._forgotten = True
        self._check_settled()

    # --- the process ---

    async def _run_process(self, link: SubprocessLink) -> None:
        """Read and write the process to its end, whatever happens here."""
        exit_ = Exit(reason="The runner failed and had to end the CLI; see its log.")
        read_to_end = False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._write, link)
                exit_ = Exit.of(await self._read(link))
                read_to_end = True
                group.cancel_scope.cancel()
        except Exception:
            log.exception("run %s: the runner failed", self.run)
        await link.close()
        self._end(exit_, unheard=not read_to_end)

    async def _read(self, link: SubprocessLink) -> LinkClosed:
        reader = LineReader(self._limits.line)
        while True:
            try:
                data = await link.receive()
            except LinkClosed as closed:
                if (rest := reader.end()) is not None:
                    self._spool_lines([rest])
                return closed
            self._spool_lines(reader.feed(data))
            await self._wait_for_room(link)

    def _spool_lines(self, lines: Iterable[Line]) -> None:
        said = [line if isinstance(line, bytes) else _cut(line) for line in lines]
        if said:
            self.spool.add(said)
            self._news.set()

    async def _wait_for_room(self, link: SubprocessLink) -> None:
        """While nothing more can be kept, the CLI waits. One that is being stopped need not."""
        while self.spool.full and not self._stopping:
            self._room.clear()
            with anyio.move_on_after(self._times.retry):
                await self._room.wait()
            self.spool.flush()
        if self._stopping and self.spool.size > self._limits.bounds.disk + LAST_WORDS:
            await anyio.to_thread.run_sync(kill_child, link.pid)

    async def _write(self, link: SubprocessLink) -> None:
        """Write what the hub brings, each number once."""
        while True:
            while not self._queue:
                self._queued.clear()
                await self._queued.wait()
            number, line = self._queue[0]
            # Before it is written: after a kill in between, it is not written a second time.
            self.spool.note_written(number)
            try:
                await link.send(line + b"\n")
            except LinkClosed:
                return  # the end, which is on its way, says it
            self._queue.popleft()
            self._written = number
            self._news.set()

    def _end(self, exit_: Exit, *, unheard: bool = False) -> None:
        number = self.spool.last + 1
        self.spool.end(Ended(number=number, unheard=unheard, **msgspec.structs.asdict(exit_)))
        self.ended_at = time.time()
        self._over.set()
        self._news.set()
        self._check_settled()

    def _check_settled(self) -> None:
        """Whether there is nothing left to tell."""
        ended = self.spool.ended
        complete = ended is not None and self.spool.acknowledged >= ended.number
        if complete or (self._forgotten and not self.live):
            self._delivered.set()

    # --- the hub ---

    async def _deliver(self) -> None:
        """Dial, talk, and dial again, for ever. One boundary for all that can go wrong there."""
        attempt = 0
        while True:
            await self._hub.connected.wait()
            socket: HubSocket | None = None
            try:
                socket = await self._hub.dial(f"/runner/runs/{self.run}")
                upto = await self._handshake(socket)
                attempt = 0
                await self._exchange(socket, upto)
            except LinkRefused as refused:
                log.info("run %s: %s", self.run, refused)
            except LinkClosed as closed:
                log.info("run %s: %s", self.run, closed.reason)
            except LinkError as error:
                log.warning("run %s: dropped the connection: %s", self.run, error)
                if socket is not None:
                    await socket.close(1002, str(error))
            except Exception:
                log.exception("run %s: dropped the connection", self.run)
            finally:
                if socket is not None:
                    await socket.close()
            await anyio.sleep(self._hub.redial.pause(attempt))
            attempt += 1

    async def _handshake(self, socket: HubSocket) -> int:
        """Say how far we are; gives how far the hub is."""
        await socket.send(self._started)
        await socket.send(Written(upto=self._written))
        try:
            with anyio.fail_after(self._times.greeting):
                header, _ = await socket.receive()
        except TimeoutError:
            raise LinkError("the hub did not say what it has") from None
        if not isinstance(header, Ack):
            raise LinkError(f"the hub began with {type(header).__name__}, not with Have")
        self._acknowledge(header.upto)
        return header.upto

    async def _exchange(self, socket: HubSocket, upto: int) -> None:
        self._wanted = None  # what an earlier connection asked for is not this one's answer
        # Errors come out of the group one by one, not as a group.
        failure: LinkError | None = None

        async def send() -> None:
            nonlocal failure
            try:
                await self._send(socket, upto)
            except LinkError as error:
                failure = failure or error
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            try:
                while True:
                    self._receive(*await socket.receive())
            except LinkError as error:
                failure = failure or error
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _send(self, socket: HubSocket, sent: int) -> None:
        reported = self._written
        waited = False
        while True:
            self._news.clear()
            if reported != self._written:
                reported = self._written
                await socket.send(Written(upto=reported))
            if (wanted := self._wanted) is not None:
                self._wanted = None
                await self._send_transcript(socket, wanted)
            sent = max(sent, self.spool.acknowledged)
            batch = self.spool.batch(sent)
            if not batch:
                await self._news.wait()
                waited = True
                continue
            first = batch[0].number
            if first > sent + 1:
                await socket.send(Gap(first=first))
            sent = batch[-1].number
            if not waited:
                await anyio.lowlevel.checkpoint()  # a backlog must not keep other runs waiting
            waited = False
            if batch[0].kind is Kind.END:
                assert self.spool.ended is not None
                await socket.send(self.spool.ended)
            else:
                await socket.send(Lines(first=first), [record.data for record in batch])

    async def _send_transcript(self, socket: HubSocket, wanted: Recall) -> None:
        """Send what the CLI has written down and the hub does not have, some of it at a time."""
        found = self._read_transcript(wanted)
        more = True
        while more:
            some = await anyio.to_thread.run_sync(found.some, self._limits.bounds.batch)
            more = bool(some)
            await socket.send(Transcript(cli_session=found.cli_session, last=not more), some)

    def _receive(self, header: object, lines: list[bytes]) -> None:
        match header:
            case Recall():
                self._wanted = header
                self._news.set()
            case Ack(upto=upto):
                self._acknowledge(upto)
            case Write(number=number):
                self._accept(number, lines)
            case _:
                raise LinkError(f"{type(header).__name__} does not belong on a run's socket")

    def _acknowledge(self, upto: int) -> None:
        if self._link is None and self.spool.ended is None:
            # Nobody saw the end of this one. Its number is past all that the hub ever got.
            self.spool.last = max(self.spool.last, upto)
            was = self.ended_at
            self._end(Exit(reason="The runner was killed, and the CLI with it."), unheard=True)
            self.ended_at = was
        if upto < 0 or upto > self.spool.last:
            raise LinkError(f"the hub has number {upto}, and the last one is {self.spool.last}")
        self.spool.acknowledge(upto)
        self._room.set()
        self._check_settled()

    def _accept(self, number: int, lines: list[bytes]) -> None:
        if len(lines) != 1 or not lines[0].strip():
            raise LinkError(f"Write {number} has {len(lines)} lines, and must have one")
        if number <= self._accepted or not self.live:
            return
        if number != self._accepted + 1:
            raise LinkError(f"Write {number} came after {self._accepted}: one is missing")
        if sum(len(line) for _, line in self._queue) > self._limits.unwritten:
            raise LinkError("the CLI does not read, and too much waits for it")
        self._accepted = number
        self._queue.append((number, lines[0]))
        self._queued.set()


def _cut(line: OversizedLine) -> bytes:
    """What stands for a line that is too long to be passed on: how long it was, and its head."""
    head = line.head.decode("utf-8", "replace")
    return msgspec.json.encode({"type": "oversized_line", "size": line.size, "head": head})
