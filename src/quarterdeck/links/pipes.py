"""The three pipes of a process and its exit, as asyncio's callbacks tell of them.

Owns the state of the pipes: what came, whether it may be written, what has ended. `SubprocessLink`
stands above it and decides; below it is asyncio's subprocess transport. It knows no signals and
stops nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
from collections.abc import Callable
from contextlib import suppress

import anyio

from quarterdeck.links.exits import Exit
from quarterdeck.links.inbox import Inbox
from quarterdeck.links.stderr import StderrTail

PIPE_BYTES = 1024 * 1024  # what Linux allows without privileges; the usual 64 KiB halve the speed

# How often to look, after the exit, whether the pipe is silent; a chatty child gets no more.
_DRAIN_ROUNDS = 4


class ProcessPipes(asyncio.SubprocessProtocol):
    """What asyncio calls back: the state of the three pipes and of the process."""

    def __init__(self, inbox: Inbox, tail: StderrTail, drain: float) -> None:
        self.inbox = inbox
        self.tail = tail
        self.pid = 0
        self.exit: Exit | None = None
        self.output_ended = False
        self.input_ended = False
        self.input_ended_by = ""
        self.writable = asyncio.Event()
        self.writable.set()
        self._drain = drain
        self._exited = anyio.Event()
        self._errors_ended = anyio.Event()
        self._paused = False
        self._discarding = False
        self._came = False
        self._rounds = 0

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self.pid = transport.get_pid() or 0
        for number in (0, 1):
            _widen(transport.get_pipe_transport(number))
        self._stdin = transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.tail.feed(data)
            return
        self._came = True
        if self._discarding and self.inbox.full:
            return
        self.inbox.put(data)
        if self.inbox.full and not self._paused and not self._discarding:
            self._paused = True
            self._stdout().pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's)
        match fd:
            case 0:
                self.input_ended = True
                self.writable.set()
            case 1:
                self.output_ended = True
                self.inbox.wake()
            case _:
                self.tail.end()
                self._errors_ended.set()

    def process_exited(self) -> None:
        self.exit = Exit(self._transport.get_returncode() or 0)
        self._exited.set()
        asyncio.get_running_loop().call_later(self._drain, self._close_held_pipes)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    # --- called by the link ---

    def take(self) -> bytes | None:
        data = self.inbox.take()
        if self._paused and not self.inbox.full:
            self._paused = False
            self._stdout().resume_reading()
        assert data is None or isinstance(data, bytes)
        return data

    def write(self, data: bytes) -> None:
        assert isinstance(self._stdin, asyncio.WriteTransport)
        self._stdin.write(data)

    def end_input(self, why: str) -> None:
        if not self.input_ended:
            self.input_ended = True
            self.input_ended_by = why
            assert isinstance(self._stdin, asyncio.WriteTransport)
            self._stdin.write_eof()
        self.writable.set()

    def discard(self) -> None:
        """Go on reading, whoever takes it: a process that cannot write cannot end."""
        self._discarding = True
        if self._paused:
            self._paused = False
            self._stdout().resume_reading()

    async def exits_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self.exit is not None

    async def errors_end_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._errors_ended.wait()

    async def release(self) -> None:
        """Let go of the pipes; what was read before can still be taken."""
        self._transport.close()
        await self.errors_end_within(self._drain)
        self.output_ended = True
        self.input_ended = True
        self.writable.set()
        self.inbox.wake()

    def _stdout(self) -> asyncio.ReadTransport:
        stdout = self._transport.get_pipe_transport(1)
        assert isinstance(stdout, asyncio.ReadTransport)
        return stdout

    def _close_held_pipes(self) -> None:
        """After the exit: end a pipe that a child of the process holds open.

        What the process itself wrote is in the kernel's buffer and is read in no time, unless the
        reader makes us pause; what comes later is a child's, and not of the protocol.
        """
        if self.output_ended and self._errors_ended.is_set():
            return
        self._rounds += not self._paused
        if self._paused or (self._came and self._rounds < _DRAIN_ROUNDS):
            self._came = False
            asyncio.get_running_loop().call_later(self._drain, self._close_held_pipes)
        else:
            self._transport.close()


def tail_for(
    loop: asyncio.AbstractEventLoop, on_line: Callable[[str], object] | None
) -> StderrTail:
    """A tail that tells each line to `on_line`, if there is one."""
    if on_line is None:
        return StderrTail()
    # By way of the loop: an error in the caller's function is the loop's to report, and does not
    # end the pipe in whose callback it happened.
    return StderrTail(lambda line: loop.call_soon(on_line, line))


def _widen(pipe: asyncio.BaseTransport | None) -> None:
    """Make the kernel's buffer larger where that is allowed; slower is no reason to fail."""
    if sys.platform == "linux" and pipe is not None:
        with suppress(OSError, ValueError):  # closed already: the process has ended
            fcntl.fcntl(pipe.get_extra_info("pipe").fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
