"""The `quarterdeck` command in a process: with pipes, or at a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import anyio

from quarterdeck.testing import fake
from quarterdeck.testing.clis import isolated_env
from quarterdeck.testing.fake import fake_cli_command
from support.bounds import SECONDS
from support.processes import Processes
from support.terminal_rows import Rows

COMMAND = (sys.executable, "-m", "quarterdeck.cli")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Done:
    """A command that has ended."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out_bytes = out
        self.out = out.decode()
        self.err = err.decode()


class Terminal:
    """The command at a terminal: what it shows, and the keys that a person presses."""

    def __init__(
        self, process: subprocess.Popen[bytes], descriptor: int, columns: int = 100
    ) -> None:
        self.process = process
        self._descriptor = descriptor
        self._columns = columns
        self.raw = ""
        self._seen = 0

    @property
    def shown(self) -> str:
        """All that was printed, without colours and movements of the cursor."""
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def rows(self) -> str:
        """What a person sees now, with what has scrolled away."""
        rows = Rows(self._columns)
        rows.feed(self.raw)
        return rows.text

    def echoes(self) -> bool:
        """Whether the terminal itself shows what is typed, which is its normal mode."""
        return bool(termios.tcgetattr(self._descriptor)[3] & termios.ECHO)

    async def see(self, text: str, seconds: float = SECONDS) -> str:
        """Read on until the text is on the screen; gives the rows."""
        with anyio.move_on_after(seconds):
            while text not in (rows := self.rows):
                if not await self._read():
                    raise AssertionError(f"the output ended before {text!r}:\n{self.rows}")
            return rows
        raise AssertionError(f"there was no {text!r} in {seconds} s:\n{self.rows}")

    async def expect(self, text: str, seconds: float = SECONDS) -> str:
        """Read on until the text is there, after what was expected before."""
        with anyio.move_on_after(seconds):
            while (found := self.shown.find(text, self._seen)) < 0:
                if not await self._read():
                    raise AssertionError(f"the output ended before {text!r}:\n{self.shown}")
            self._seen = found + len(text)
            return self.shown
        raise AssertionError(f"there was no {text!r} in {seconds} s:\n{self.rows}")

    def press(self, keys: str) -> None:
        """Type, as a person would."""
        os.write(self._descriptor, keys.encode())

    def interrupt(self) -> None:
        """What Ctrl-C does, by the process's id."""
        os.kill(self.process.pid, signal.SIGINT)

    async def end(self, seconds: float = SECONDS) -> int:
        """Read to the end; the exit code."""
        with anyio.fail_after(seconds):
            while await self._read():
                pass
        return await anyio.to_thread.run_sync(self.process.wait, seconds)

    async def _read(self) -> bool:
        await anyio.wait_readable(self._descriptor)
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # Linux says EIO when the other end of the terminal is closed
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


class Quarterdeck:
    """Starts the command in an environment of its own, against a model on loopback."""

    def __init__(self, home: Path, url: str, cli: tuple[str, ...], processes: Processes) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.env = isolated_env(home, url, QUARTERDECK_CLAUDE=cli[-1])
        self._processes = processes
        self._open: list[int] = []
        self._at_terminals: list[subprocess.Popen[bytes]] = []
        self.left_running: list[anyio.abc.Process] = []
        """What `start` started."""

    def play_fake(self, *steps: fake.Step, record: Path | None = None) -> None:
        """Put a fake CLI in the place of the real one."""
        command = fake_cli_command(steps, folder=self.home, record=record)
        script = self.home / f"claude-{len(list(self.home.iterdir()))}"
        quoted = " ".join(f"'{part}'" for part in command)
        script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        script.chmod(0o755)
        self.env["QUARTERDECK_CLAUDE"] = str(script)

    async def __call__(self, *arguments: str, stdin: bytes = b"", **env: str) -> Done:
        """Run to the end, with pipes."""
        process = await self.start(*arguments, **env)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = bytearray(), bytearray()
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_drain, process.stdout, out)
                tasks.start_soon(_drain, process.stderr, err)
                if stdin:
                    await process.stdin.send(stdin)
                await process.stdin.aclose()
            code = await process.wait()
        return Done(code, bytes(out), bytes(err))

    async def start(self, *arguments: str, **env: str) -> anyio.abc.Process:
        """Start with pipes, and leave it running."""
        process = await anyio.open_process(
            [*COMMAND, *arguments], env=self.env | env, cwd=self.work, start_new_session=True
        )
        self._processes.started(process.pid)
        self.left_running.append(process)
        return process

    def at_terminal(
        self, *arguments: str, size: tuple[int, int] = (40, 100), **env: str
    ) -> Terminal:
        """Start at a terminal of so many rows and columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            env=self.env | {"TERM": "xterm-256color"} | env,
            cwd=self.work,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        self._processes.started(process.pid)
        os.close(theirs)
        self._open.append(ours)
        self._at_terminals.append(process)
        return Terminal(process, ours, size[1])

    def close(self) -> None:
        for process in self._at_terminals:
            if process.poll() is None:
                process.kill()
                process.wait()
        for descriptor in self._open:
            os.close(descriptor)


async def _drain(stream: anyio.abc.ByteReceiveStream, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk
