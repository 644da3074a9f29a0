"""One run: a CLI process, and all traffic between it and the hub.

Owns the process, the numbers in both directions, and the run's socket. The `Runner` is above;
`SubprocessLink`, the `Spool` and `hublink` are below. It never parses a line.

Three tasks run at once, and none waits for another: one reads the process into the spool, one
writes the hub's lines to the process, and one holds a connection, if there is one, which takes from
the spool and receives lines. So a disconnected hub stops nothing, and a CLI that does not read does
not delay the hub's acknowledgements.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable
from functools import partial

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from quarterdeck.domain.coded import TextCode
from quarterdeck.domain.errors import LinkClosed, LinkError, LinkRefused
from quarterdeck.domain.exits import RUNNER_KILLED, Exit
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.protocol.coded_texts import coded_exit
from quarterdeck.protocol.runner_frames import (
    Ack,
    Connection,
    Ended,
    Gap,
    Lines,
    RunReport,
    Transcript,
    TranscriptQuery,
    Write,
    Written,
)
from quarterdeck.runner.exit import kill_child
from quarterdeck.runner.hublink import Hub, HubSocket, run_together
from quarterdeck.runner.limits import MIB, Limits, Times
from quarterdeck.runner.segments import Kind
from quarterdeck.runner.start import Process
from quarterdeck.wire.line_reader import Line, LineReader, OversizedLine

log = logging.getLogger("quarterdeck.runner")

LAST_WORDS = 64 * MIB
"""Output beyond the spool's limit that is accepted from a CLI that is being stopped."""


class Run:
    """A run, from its start until the hub has acknowledged its end. `serve` does everything.

    Without a link it is the run of an earlier runner: only the rest of its lines is delivered.
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
        self._connections = process.connections
        self._hub = hub
        self._limits = limits
        self._times = times
        self._accepted = self._written = self.spool.written
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queued = asyncio.Event()
        self._wanted: TranscriptQuery | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._delivered = asyncio.Event()
        self._stopping = False
        self._forgotten = False
        if self._connections is not None:
            self._connections.listen(self._spool_connections)

    @property
    def directory(self) -> str | None:
        """The folder that its process works in."""
        return self._started.directory

    @property
    def live(self) -> bool:
        """Whether the process is running."""
        return self._link is not None and not self._over.is_set()

    @property
    def settled(self) -> bool:
        """Whether the hub has acknowledged everything, or has forgotten the run."""
        return self._delivered.is_set()

    @property
    def report(self) -> RunReport:
        """The state of the run, as the hub needs it."""
        return RunReport(
            run=self.run,
            session=self.session,
            said=self.spool.last,
            written=self._written,
            ended=not self.live,
        )

    async def serve(self) -> None:
        """Run until the process has ended and the hub has acknowledged everything."""
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
        """End the process: close its input, then signal it. `force` kills it at once."""
        if self._link is None or self._over.is_set():
            return
        self._stopping = True
        self._room.set()
        if force:
            await anyio.to_thread.run_sync(kill_child, self._link.pid)
        else:
            await self._link.end_input()
        # Its last output is read to the end; `close` would cut it short.
        with anyio.move_on_after(self._times.stop.input):
            await self._over.wait()
        await self._link.close()

    async def wait_ended(self) -> None:
        """Wait until the process has ended and its end is numbered."""
        if self._link is not None:
            await self._over.wait()

    async def wait_delivered(self) -> None:
        """Wait until the hub has acknowledged everything."""
        await self._delivered.wait()

    def forget(self) -> None:
        """The hub needs nothing more of this run, once it has ended."""
        self._forgotten = True
        self._check_settled()

    # --- the process ---

    async def _run_process(self, link: SubprocessLink) -> None:
        """Read and write the process until it ends, whatever fails here."""
        exit_ = coded_exit(TextCode.RUNNER_FAILED, fault=RUNNER_KILLED)
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

    def _spool_connections(self) -> None:
        """Number what the sandbox's proxy reports, between the lines."""
        if self._connections is None or self.spool.ended is not None:
            return
        for each in self._connections.take():
            self.spool.add_report(
                Connection(
                    number=self.spool.last + 1,
                    host=each.host,
                    port=each.port,
                    allowed=each.allowed,
                    count=each.count,
                )
            )
        self._news.set()

    async def _wait_for_room(self, link: SubprocessLink) -> None:
        """Make the CLI wait while the spool is full, unless it is being stopped."""
        while self.spool.full and not self._stopping:
            self._room.clear()
            with anyio.move_on_after(self._times.retry):
                await self._room.wait()
            self.spool.flush()
        if self._stopping and self.spool.size > self._limits.bounds.disk + LAST_WORDS:
            await anyio.to_thread.run_sync(kill_child, link.pid)

    async def _write(self, link: SubprocessLink) -> None:
        """Write the hub's lines to the process, each number once."""
        while True:
            while not self._queue:
                self._queued.clear()
                await self._queued.wait()
            number, line = self._queue[0]
            # Recorded before the write: after a kill in between it is not written a second time.
            self.spool.note_written(number)
            try:
                await link.send(line + b"\n")
            except LinkClosed:
                return  # the read side reports the end
            self._queue.popleft()
            self._written = number
            self._news.set()

    def _end(self, exit_: Exit, *, unheard: bool = False) -> None:
        if self._connections is not None:
            self._connections.finish()
        number = self.spool.last + 1
        self.spool.end(Ended(number=number, unheard=unheard, **msgspec.structs.asdict(exit_)))
        self.ended_at = time.time()
        self._over.set()
        self._news.set()
        self._check_settled()

    def _check_settled(self) -> None:
        """Set the event when there is nothing left to deliver."""
        ended = self.spool.ended
        complete = ended is not None and self.spool.acknowledged >= ended.number
        if complete or (self._forgotten and not self.live):
            self._delivered.set()

    # --- the hub ---

    async def _deliver(self) -> None:
        """Connect, exchange frames, and reconnect, for ever. Handles all failures."""
        attempt = 0
        while True:
            await self._hub.connected.wait()
            moved = self._hub.moved
            socket: HubSocket | None = None
            try:
                socket = await self._hub.dial(f"/runner/runs/{self.run}")
                upto = await self._handshake(socket)
                attempt = 0
                await self._exchange(socket, upto, moved)
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
        """Report our state; returns the number that the hub has acknowledged."""
        await socket.send(self._started)
        await socket.send(Written(upto=self._written))
        try:
            with anyio.fail_after(self._times.greeting):
                header, _ = await socket.receive()
        except TimeoutError:
            raise LinkError("the hub did not acknowledge in time") from None
        if not isinstance(header, Ack):
            raise LinkError(f"the hub began with {type(header).__name__}, not with `have`")
        self._acknowledge(header.upto)
        return header.upto

    async def _exchange(self, socket: HubSocket, upto: int, moved: asyncio.Event) -> None:
        self._wanted = None  # a request of an earlier connection is not answered on this one

        async def receive() -> None:
            while True:
                self._receive(*await socket.receive())

        async def leave() -> None:
            await moved.wait()
            raise LinkClosed("the machine is connected to another hub", close_code=1000)

        await run_together(partial(self._send, socket, upto), receive, leave)

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
                await anyio.lowlevel.checkpoint()  # a backlog must not make other runs wait
            waited = False
            if batch[0].kind is Kind.END:
                assert self.spool.ended is not None
                await socket.send(self.spool.ended)
            elif batch[0].kind is Kind.REPORT:
                await socket.send(msgspec.json.decode(batch[0].data, type=Connection))
            else:
                await socket.send(Lines(first=first), [record.data for record in batch])

    async def _send_transcript(self, socket: HubSocket, wanted: TranscriptQuery) -> None:
        """Send the messages of the transcript that the hub does not have, in batches."""
        found = self._read_transcript(wanted)
        more = True
        while more:
            some = await anyio.to_thread.run_sync(found.some, self._limits.bounds.batch)
            more = bool(some)
            answer = Transcript(
                cli_session=found.cli_session, last=not more, earlier=wanted.earlier
            )
            await socket.send(answer, some)

    def _receive(self, header: object, lines: list[bytes]) -> None:
        match header:
            case TranscriptQuery():
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
            # The end of this run was never seen. Its number is past all that the hub acknowledged.
            self.spool.last = max(self.spool.last, upto)
            was = self.ended_at
            self._end(coded_exit(TextCode.RUNNER_KILLED, fault=RUNNER_KILLED), unheard=True)
            self.ended_at = was
        if upto < 0 or upto > self.spool.last:
            raise LinkError(
                f"the hub acknowledged {upto}, but the last number is {self.spool.last}"
            )
        self.spool.acknowledge(upto)
        self._room.set()
        self._check_settled()

    def _accept(self, number: int, lines: list[bytes]) -> None:
        if len(lines) != 1 or not lines[0].strip():
            raise LinkError(f"Write {number} has {len(lines)} lines instead of one")
        if number <= self._accepted or not self.live:
            return
        if number != self._accepted + 1:
            raise LinkError(f"Write {number} came after {self._accepted}: numbers are missing")
        if sum(len(line) for _, line in self._queue) > self._limits.unwritten:
            raise LinkError("the CLI does not read its input, and too many lines wait for it")
        self._accepted = number
        self._queue.append((number, lines[0]))
        self._queued.set()


def _cut(line: OversizedLine) -> bytes:
    """The replacement of a line that is too long to be passed on: its size and its head."""
    head = line.head.decode("utf-8", "replace")
    return msgspec.json.encode({"type": "oversized_line", "size": line.size, "head": head})
