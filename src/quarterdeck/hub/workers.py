"""Work that may take long, in processes that can be killed.

A policy that a person tries, a history that it is held against, and Markdown that an agent wrote
cost as much time as their author wants. A thread is no protection: Python runs one at a time,
and nobody can end one. So this work is done in processes of its own, with limits for time and
memory; over the limit the process is killed, and the next call starts another.

Each person has one turn at a time, and there are few turns in all. Nothing else in the hub waits
for a turn, and this module uses no thread of anyio's pool: login, tokens and the end of the hub are
never behind it.

The processes are plain subprocesses (`worker`) that read pickled calls from their stdin. The pool
of `multiprocessing` was no choice: `spawn` imports the program's `__main__` again, `fork` is unsafe
beside threads, and `forkserver` leaves two more processes behind. `anyio.to_process` imports
`__main__` too, has no limit for memory, and its processes go on computing when the hub is killed.
Here a process starts with the first call, is kept for the next, ends when its stdin does (also when
the hub is killed), and has a limit of processor time from the kernel for the case that it is busy
at that moment.
"""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from quarterdeck.domain.errors import WorkLimit
from quarterdeck.hub.worker import HEADER, Call, Feed, Reply

log = logging.getLogger(__name__)

PROCESSES = 2
"""How many work at a time, and are kept for the next call."""

WAITING = 4
"""Calls of one person that wait for the one that is under way. More are refused at once."""

WAIT_SECONDS = 10.0
"""How long a call waits for its turn."""

START_SECONDS = 30.0
"""A cold start of Python on a busy machine."""

MEMORY_BYTES = 1024 * 1024 * 1024
"""Of address space, for one process."""

REPLY_BYTES = 8 * 1024 * 1024
"""The longest reply. The event loop reads it in one piece."""

BATCH = 200
"""Items that are sent at once. Others may go on between two batches."""

_T = TypeVar("_T")

_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    OSError,
)
"""What a pipe to a process raises that is no more."""


class Workers:
    """The processes, and who may use one next."""

    def __init__(
        self,
        *,
        processes: int = PROCESSES,
        wait_seconds: float = WAIT_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._processes = processes
        self._free = anyio.Semaphore(processes)
        self._wait_seconds = wait_seconds
        self._memory_bytes = memory_bytes
        self._people: dict[str, _Queue] = {}
        self._idle: list[_Worker] = []
        self._taken: set[_Worker] = set()
        self._closed = False

    @property
    def idle(self) -> tuple[int, ...]:
        """The processes that wait for a call, by their numbers."""
        return tuple(worker.pid for worker in self._idle)

    @property
    def busy(self) -> int:
        """How many processes are at work."""
        return self._processes - self._free.value

    @asynccontextmanager
    async def turn(
        self, person: str, *, wait_seconds: float | None = None, most_waiting: int = WAITING
    ) -> AsyncIterator[Turn]:
        """Have a turn, after this person's other calls. Raises `WorkLimit` after too long a wait.

        The process is taken with the first use of the turn, so that others have it until then.
        """
        seconds = self._wait_seconds if wait_seconds is None else wait_seconds
        queue = self._people.setdefault(person, _Queue())
        if queue.calls > most_waiting:
            raise WorkLimit("busy", f"{queue.calls} calls of {person} are under way already")
        queue.calls += 1
        try:
            with anyio.move_on_after(seconds) as limit:
                await queue.lock.acquire()
            if limit.cancelled_caught:
                raise WorkLimit("busy", f"another call of {person} took all of {seconds:g} s")
            turn = Turn(self, seconds)
            try:
                yield turn
            finally:
                queue.lock.release()
                await turn.end()
        finally:
            queue.calls -= 1
            if not queue.calls:
                self._people.pop(person, None)

    async def take(self, seconds: float) -> _Worker:
        """A process for a turn. Raises `WorkLimit` when none is free in time."""
        with anyio.move_on_after(seconds) as limit:
            await self._free.acquire()
        if limit.cancelled_caught:
            raise WorkLimit("busy", f"calls of others took all of {seconds:g} s")
        try:
            if self._closed:
                raise WorkLimit("busy", "the hub stops")
            worker = self._idle.pop() if self._idle else await _Worker.start(self._memory_bytes)
            self._taken.add(worker)
            return worker
        except BaseException:
            self._free.release()
            raise

    async def give_back(self, worker: _Worker) -> None:
        """Keep a process for the next turn, or end one that is in the middle of something."""
        self._taken.discard(worker)
        try:
            if worker.clean and not self._closed:
                self._idle.append(worker)
            else:
                await worker.kill()
        finally:
            self._free.release()

    async def close(self) -> None:
        """End all processes, and with them the calls that are under way."""
        self._closed = True
        for worker in tuple(self._taken):
            await worker.kill()
        await self.end_idle()

    async def end_idle(self) -> None:
        """End the processes that wait for a call; the next call starts one again."""
        while self._idle:
            await self._idle.pop().kill()


class _Queue:
    """The calls of one person."""

    def __init__(self) -> None:
        self.calls = 0
        self.lock = anyio.Lock()


class Turn:
    """The use of one process, by one caller."""

    def __init__(self, workers: Workers, wait_seconds: float) -> None:
        self._workers = workers
        self._wait_seconds = wait_seconds
        self._worker: _Worker | None = None
        self._fed = False

    async def feed(self, items: Sequence[object]) -> None:
        """Send items that the next call gets as a list, before its own arguments."""
        self._fed = True
        for start in range(0, len(items), BATCH):
            worker = await self._take_worker()
            try:
                await worker.send(Feed(tuple(items[start : start + BATCH])))
            except _GONE as error:
                raise await self._exit_reason(worker) from error

    async def call(
        self, seconds: float, function: Callable[..., _T], /, *args: object, **named: object
    ) -> _T:
        """Call a function there. Raises what it raises, and `WorkLimit` when it takes too much."""
        worker = await self._take_worker()
        fed, self._fed = self._fed, False
        reply: Reply | None = None
        with anyio.move_on_after(seconds):
            try:
                reply = await worker.ask(Call(function, args, named, seconds, fed))
            except _GONE:
                raise await self._exit_reason(worker) from None
        if reply is None:
            raise WorkLimit("took_too_long", f"it took longer than the {seconds:g} s that it may")
        if reply.limit:
            worker.clean = False  # its memory is full of this call
            raise WorkLimit("took_too_long", reply.limit)
        if reply.error is not None:
            raise reply.error
        value: _T = reply.value
        return value

    async def end(self) -> None:
        """Give the process back."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await self._workers.give_back(worker)

    async def _take_worker(self) -> _Worker:
        if self._worker is None:
            self._worker = await self._workers.take(self._wait_seconds)
        return self._worker

    async def _exit_reason(self, worker: _Worker) -> WorkLimit:
        """Why the process is gone: the limits of the kernel kill without a word."""
        log.warning("a worker process ended within a call, with status %s", await worker.kill())
        return WorkLimit("took_too_long", "it took more time or memory than it may")


class _Worker:
    """One process. `clean`: it waits for the next call, and nothing is left of the last."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self.clean = False

    @classmethod
    async def start(cls, memory_bytes: int) -> _Worker:
        """Start a process, and wait until it has imported all that it needs."""
        # Of its own session: Ctrl-C in a terminal is for the hub. `-P`: no module of a repository
        # that the hub was started in may take the place of ours.
        program = "from quarterdeck.hub.worker import main; main()"
        command = [sys.executable, "-P", "-c", program]
        try:
            process = await anyio.open_process(
                [*command, str(memory_bytes), str(REPLY_BYTES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise WorkLimit("busy", f"a worker process cannot be started: {error}") from error
        worker = cls(process)
        try:
            with anyio.fail_after(START_SECONDS):
                await worker._receive()
        except BaseException as error:
            await worker.kill()
            if isinstance(error, Exception):
                raise WorkLimit("busy", "a worker process does not begin") from error
            raise
        worker.clean = True
        return worker

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    async def send(self, message: Call | Feed) -> None:
        """Send a message. Until the reply to a call, the process is not clean."""
        self.clean = False
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        await self._stdin.send(HEADER.pack(len(data)) + data)

    async def ask(self, call: Call) -> Reply:
        """Send a call, and receive what came of it."""
        await self.send(call)
        reply = await self._receive()
        self.clean = True
        return reply

    async def _receive(self) -> Reply:
        (length,) = HEADER.unpack(await self._stdout.receive_exactly(HEADER.size))
        data = await self._stdout.receive_exactly(length)
        # The process is our own program; it only ever sends a `Reply`.
        reply: Any = pickle.loads(data)  # noqa: S301
        assert isinstance(reply, Reply)
        return reply

    async def kill(self) -> int | None:
        """End it at once, and leave nothing of it."""
        self.clean = False
        with anyio.CancelScope(shield=True):
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
            # Closes the pipes before it waits: an event loop that ends may interrupt the wait.
            await self._process.aclose()
        return self._process.returncode
