"""Lines that a person types, and the area of the screen where they are asked.

Owns the keyboard side of a terminal: reading a line without a thread, so that the wait can be
cancelled at any moment, and an `Area` that counts its rows and can erase them. It knows nothing of
agents; the dialogues are in `keyboard`.

The terminal stays in its normal line mode: the kernel does the editing, Ctrl-C is a signal, and
nothing has to be restored when the process dies.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque

import anyio
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from quarterdeck.cli.terminal.text import plain

SETTLE_SECONDS = 0.4
"""A person cannot have read a question that was shown for less than this."""


class Keys:
    """Lines from a terminal, by its file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._lines: deque[str] = deque()
        self._begun = b""

    async def line(self) -> str | None:
        """The next line, without its newline; None when the person ends the input (Ctrl-D)."""
        while not self._lines:
            if not (data := await self.read()):
                return None
            *whole, self._begun = (self._begun + data).split(b"\n")
            self._lines += (line.decode("utf-8", "replace") for line in whole)
        return self._lines.popleft()

    async def read(self) -> bytes | None:
        """What was typed, at least one byte; None when the person ends the input."""
        loop = asyncio.get_running_loop()
        readable = anyio.Event()
        loop.add_reader(self.descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self.descriptor)
        try:
            return os.read(self.descriptor, 65536) or None
        except OSError:
            return None  # the terminal is gone

    def forget(self) -> None:
        """Discard input that was typed before the question was shown."""
        self._lines.clear()
        self._begun = b""
        try:
            import termios

            termios.tcflush(self.descriptor, termios.TCIFLUSH)
        except (ImportError, OSError):
            pass


class Area:
    """A part of the terminal, from the cursor down, that can be erased as a whole."""

    def __init__(self, console: Console, keys: Keys) -> None:
        self._console = console
        self._keys = keys
        self._rows = 0
        self._asked = False

    def print(self, *lines: Text) -> None:
        """Print lines, wrapped at the width of the terminal."""
        for line in lines:
            with self._console.capture() as captured:
                self._console.print(line)
            text = captured.get()
            self._rows += text.count("\n")
            self._console.file.write(text)
        self._console.file.flush()

    async def ask(self, question: str) -> str | None:
        """Print a question, wait for a line; None when the person ends the input.

        What is typed in the first moment was not meant for it, and is discarded.
        """
        if not self._asked:
            self._asked = True
            await anyio.sleep(SETTLE_SECONDS)
            self._keys.forget()
        self._console.print(Text(question, "bold"), end="")
        typed = await self._keys.line()
        if typed is None:
            self._console.print()
        self._rows += 1 + cell_len(question + (typed or "")) // max(1, self._console.width)
        return None if typed is None else plain(typed).strip()

    def erase(self) -> bool:
        """Erase everything; False if it does not fit the screen, or cannot be done."""
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            return False
        if self._rows >= self._console.height:
            return False
        up = f"\x1b[{self._rows}A" if self._rows else ""
        self._console.file.write(f"\r{up}\x1b[J")
        self._console.file.flush()
        self._rows = 0
        return True


def keyboard_there() -> bool:
    """Whether a person can be asked: stdin is a terminal, and stdout or stderr is."""
    return _terminal(sys.stdin) and (_terminal(sys.stdout) or _terminal(sys.stderr))


def _terminal(stream: object) -> bool:
    try:
        return bool(getattr(stream, "isatty", bool)())
    except ValueError:
        return False  # it was closed
