"""The CLI as a child process: bytes over its stdin and stdout.

Owns the process from start to reaping, and all its descendants. The `Agent` and the runner use it.
It knows bytes, exits and signals, and never looks into a line.

It uses pipes, never a terminal: a terminal cuts long lines and echoes. stdout and stderr are read
at once, whether or not a reader waits, until `high_water` bytes are unread; then the CLI blocks
(back-pressure).
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import SubprocessError
from typing import Self

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from quarterdeck.claude.environment import child_environment
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import LaunchError, LinkClosed
from quarterdeck.links.base import Closing, check_whole_lines
from quarterdeck.links.inbox import Inbox
from quarterdeck.links.pipes import LONGEST_LINE, ProcessPipes, tail_for
from quarterdeck.runtime import processes
from quarterdeck.runtime.processes import ProcessId

HIGH_WATER = 8 * 1024 * 1024


class StopSteps(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds each step of stopping may take before the next one is taken."""

    input: float = 5.0  # from the end of its input; a turn that runs is finished in this time
    term: float = 5.0  # from SIGTERM; newer CLIs need up to 1.7 s to end their shells
    kill: float = 5.0  # from SIGKILL; only a process stuck in the kernel takes longer
    orphans: float = 1.0  # for processes that the CLI left behind, from SIGTERM to SIGKILL
    silent: float = 5.0  # from the end of its output until it counts as ended though it runs
    drain: float = 0.5  # from its exit, while one of its children still holds the pipe open


class SubprocessLink(Closing):
    """A CLI process and the pipes to it. Start it with `start`, end it with `close`.

    It is an async context manager. However it ends, no descendant is left, including processes that
    the CLI started in new sessions.
    """

    def __init__(self, pipes: ProcessPipes, mark: str, steps: StopSteps) -> None:
        self._pipes = pipes
        self._mark = mark
        self._steps = steps
        self._send_order = asyncio.Lock()
        self._close_order = asyncio.Lock()
        self._closed = False
        self._stopped_by = ""
        self._fault = ""
        self._code = TextCode.PROCESS_ENDED

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        argv: Sequence[str] = (),
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        steps: StopSteps | None = None,
        on_stderr: Callable[[str], object] | None = None,
        longest_stderr_line: int = LONGEST_LINE,
        inherit_stderr: bool = False,
        user: str | int | None = None,
        high_water: int = HIGH_WATER,
        dies_with_us: bool = False,
    ) -> Self:
        """Start `command` with `argv`, in `cwd` and with exactly the environment `env`.

        Without `env` it gets the environment of `child_environment`, not all of ours. `on_stderr`
        gets each line of stderr as it arrives, from the event loop, cut off after
        `longest_stderr_line` bytes. With `inherit_stderr` the CLI writes to our stderr instead, and
        no line of it is kept. `user` is who it runs as. With `dies_with_us` the kernel kills the
        process when ours is killed (Linux). Raises `LaunchError` when the process
        cannot be started.
        """
        steps = steps or StopSteps()
        if cwd is not None and not await anyio.Path(cwd).is_dir():
            raise LaunchError(f"the working directory {os.fspath(cwd)!r} does not exist")
        # Each link uses its own variable, so that a link inside a link keeps the outer mark.
        mark = f"QUARTERDECK_LINK_{uuid.uuid4().hex}"
        child_env = {**(child_environment() if env is None else env), mark: "1"}
        loop = asyncio.get_running_loop()
        tail = tail_for(loop, on_stderr, longest_stderr_line)
        pipes = ProcessPipes(Inbox(high_water), tail, steps.drain)
        with anyio.CancelScope(shield=True):  # a start that is cut in two would leave a process
            try:
                await loop.subprocess_exec(
                    lambda: pipes,
                    *command,
                    *argv,
                    cwd=cwd,
                    env=child_env,
                    stderr=None if inherit_stderr else asyncio.subprocess.PIPE,
                    user=user,
                    start_new_session=True,
                    preexec_fn=processes.die_with_parent if dies_with_us else None,
                )
            except (OSError, ValueError, SubprocessError, LookupError) as error:  # (of the user)
                raise _launch_error(command, error) from error
        link = cls(pipes, mark, steps)
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def resumable(self) -> bool:
        """A process that has ended does not come back."""
        return False

    @property
    def pid(self) -> int:
        """The number of the process that was started."""
        return self._pipes.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, as Python says it, or None while it runs."""
        return self._pipes.exit.code if self._pipes.exit is not None else None

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines that it wrote to stderr."""
        return self._pipes.tail.lines

    async def receive(self) -> bytes:
        """All bytes since the last call; waits while there are none.

        Raises `LinkClosed`, with the exit explained, after the last byte. A CLI that closes its
        output and keeps running is stopped.
        """
        while True:
            if (data := self._pipes.take()) is not None:
                return data
            if self._pipes.output_ended:
                raise await self._output_ended()
            await self._pipes.inbox.wait()

    async def send(self, data: bytes) -> None:
        """Write whole lines, after those of earlier callers; waits while the CLI does not read.

        Cancelled, it has written either all of `data` or nothing.
        """
        check_whole_lines(data)
        if not data:
            return
        async with self._send_order:
            await self._pipes.writable.wait()
            if self._pipes.input_ended:
                raise await self._input_ended()
            self._pipes.write(data)

    async def end_input(self) -> None:
        """End the CLI's stdin after everything that was sent: it finishes its turn and exits."""
        async with self._send_order:
            self._pipes.end_input("its input has ended")

    async def close(self) -> None:
        """End the process and its descendants in steps; bounded by the times of the steps."""
        with anyio.CancelScope(shield=True):
            async with self._close_order:
                if not self._closed:
                    await self._stop()
                    self._closed = True

    async def _stop(self) -> None:
        family = await self._family()
        self._pipes.end_input("the link was closed")
        self._pipes.discard()
        if not await self._pipes.exits_within(self._steps.input):
            family |= await self._family()
            self._stopped_by = "it did not exit when its input ended, and was terminated"
            self._code = TextCode.PROCESS_TERMINATED
            self._fault = "no_exit"
            self._signal_group(signal.SIGTERM)
        if not await self._pipes.exits_within(self._steps.term):
            family |= await self._family()
            self._stopped_by = "it did not stop when it was terminated, and was killed"
            self._code = TextCode.PROCESS_KILLED
            self._signal_group(signal.SIGKILL)
        await self._pipes.exits_within(self._steps.kill)
        await self._end_orphans(family)
        await self._pipes.release()

    async def _family(self) -> frozenset[ProcessId]:
        """Every process that came from ours, itself excepted."""

        def look() -> frozenset[ProcessId]:
            found = processes.with_variable(self._mark)
            if self._pipes.exit is None:
                found |= processes.descendants(self.pid)
            return frozenset(each for each in found if each.pid != self.pid)

        # A separate limiter: the program's other threads must not delay the end of a process.
        return await anyio.to_thread.run_sync(look, limiter=anyio.CapacityLimiter(1))

    def _signal_group(self, number: signal.Signals) -> None:
        # The group's number is certainly its own only until the process is reaped.
        if self._pipes.exit is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def _end_orphans(self, family: frozenset[ProcessId]) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            # Look again each time: a shell may have started another one.
            family |= await self._family()
            for process in processes.still_alive(family):
                processes.send_signal(process, number)
            with anyio.move_on_after(self._steps.orphans):
                while processes.still_alive(family):  # noqa: ASYNC110  (the kernel sends no event)
                    await anyio.sleep(0.02)

    async def _output_ended(self) -> LinkClosed:
        if not await self._pipes.exits_within(self._steps.silent):
            await self.close()
            self._stopped_by = "it closed its output and kept running, so it was stopped"
            self._fault = "output_closed"
            self._code = TextCode.OUTPUT_CLOSED
        await self._pipes.errors_end_within(self._steps.drain)
        return self._explain()

    async def _input_ended(self) -> LinkClosed:
        if self._pipes.input_ended_by:
            return LinkClosed(f"Nothing more can be sent: {self._pipes.input_ended_by}.")
        # The pipe broke, mostly because the process ended. Then the exit is the explanation.
        await self._pipes.exits_within(self._steps.drain)
        await self._pipes.errors_end_within(self._steps.drain)
        return self._explain()

    def _explain(self) -> LinkClosed:
        ended, code = self._pipes.exit, self._code
        if ended is None:
            if not self._stopped_by:
                code = TextCode.INPUT_NOT_READ
            happened = self._stopped_by or "it no longer reads its input, but still runs"
        else:
            happened = "; ".join(filter(None, (self._stopped_by, ended.description)))
        return LinkClosed(
            f"The CLI has ended: {happened}.",
            exit_code=ended.code if ended else None,
            signal=ended.signal if ended else None,
            stderr=self.stderr,
            fault=self._fault,
            coded=CodedText(code=code),
        )


def _launch_error(command: Sequence[str], error: Exception) -> LaunchError:
    program = command[0] if command else "(no command)"
    match getattr(error, "errno", None):
        case errno.ENOENT:
            # A script with a missing interpreter is reported as «not found» too.
            there = Path(program).exists()
            return LaunchError(
                f"{program} could not be started: "
                + ("its interpreter is missing" if there else "it does not exist")
            )
        case errno.EACCES:
            return LaunchError(f"{program} could not be started: it is not executable")
        case errno.E2BIG:
            return LaunchError(
                f"{program} could not be started: its arguments and environment are too long"
            )
        case errno.ENOEXEC:
            return LaunchError(f"{program} could not be started: it cannot run on this machine")
        case _:
            said = error.args[0] if isinstance(error, LookupError) and error.args else error
            return LaunchError(f"{program} could not be started: {said}")
