"""The three pipes of a process, its stderr tail and its exit, from asyncio's callbacks.

Owns the state of the pipes: received bytes, whether writing is possible, what has ended.
`SubprocessLink` makes the decisions. This module sends no signals.
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import anyio
import msgspec

from quarterdeck.domain.exits import exit_text, signal_in
from quarterdeck.links.inbox import Inbox


class Exit(msgspec.Struct, frozen=True):
    """The end of a process. `code` is as Python says it: negative for a signal."""

    code: int

    @property
    def signal(self) -> int | None:
        """The signal that ended it, also when it caught the signal and exited with 128 + its
        number.
        """
        return signal_in(self.code)

    @property
    def description(self) -> str:
        """One clause for people: what happened, with the code."""
        return exit_text(self.code)


KEPT_LINES = 50
LONGEST_LINE = 4096  # bytes; a minified stack trace can be megabytes in one line


class StderrTail:
    """Splits bytes into lines, keeps the last ones, and passes each to `on_line`."""

    def __init__(
        self, on_line: Callable[[str], object] | None = None, longest: int = LONGEST_LINE
    ) -> None:
        self._on_line = on_line
        self._longest = longest
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._partial = bytearray()
        self._skipping = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first, with the unfinished one at the end."""
        rest = (self._text(bytes(self._partial)),) if self._partial else ()
        return (*self._lines, *rest)[-KEPT_LINES:]

    def feed(self, data: bytes) -> None:
        """Add bytes that were read."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._add(line)
            self._finish()
        self._add(rest)

    def end(self) -> None:
        """No more will come: an unfinished line is a line now."""
        if self._partial:
            self._finish()

    def _add(self, piece: bytes) -> None:
        room = self._longest - len(self._partial)
        self._partial += piece[:room]
        self._skipping = self._skipping or len(piece) > room

    def _finish(self) -> None:
        text = self._text(bytes(self._partial)) + (" …" if self._skipping else "")
        self._partial.clear()
        self._skipping = False
        if text.strip():
            self._lines.append(text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} …")
            if self._on_line is not None:
                self._on_line(text)

    @staticmethod
    def _text(line: bytes) -> str:
        return line.decode("utf-8", "replace").rstrip("\r")


PIPE_BYTES = 1024 * 1024  # what Linux allows without privileges; the usual 64 KiB halve the speed

# How many times the pipe is checked for silence after the exit.
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
        if transport.get_pipe_transport(2) is None:  # the process writes to our own stderr
            self._errors_ended.set()

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
        """Keep reading without a reader: a process that cannot write cannot exit."""
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
        """Close the pipes; bytes that were read before can still be taken."""
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
        """After the exit: close a pipe that a child of the process holds open.

        The kernel's buffer has everything that the process itself wrote, and it is read at once,
        unless the reader makes us pause. Later bytes come from a child and are not part of the
        protocol.
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
    loop: asyncio.AbstractEventLoop,
    on_line: Callable[[str], object] | None,
    longest: int = LONGEST_LINE,
) -> StderrTail:
    """A tail that passes each line to `on_line`, if given."""
    if on_line is None:
        return StderrTail()
    # Called by the event loop: the loop reports an error in the caller's function, and the pipe's
    # callback does not fail with it.
    return StderrTail(lambda line: loop.call_soon(on_line, line), longest)


def _widen(pipe: asyncio.BaseTransport | None) -> None:
    """Enlarge the kernel's buffer where that is allowed; a small one only costs speed."""
    if sys.platform == "linux" and pipe is not None:
        with suppress(OSError, ValueError):  # closed already: the process has ended
            fcntl.fcntl(pipe.get_extra_info("pipe").fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
