"""The prompt line, typed while other things are shown; and who has the keyboard.

Owns the mode of the terminal: while a person can type a prompt, each key is read at once and shown
by the `footer`. A dialogue takes the keyboard (`lend`), and the terminal is then in its normal line
mode. What is typed as a prompt never reaches a dialogue: the dialogue begins when the prompt line
is empty, and what was typed meanwhile stays.

Where there is no footer, the kernel edits the line, as in `keys`, and a dialogue interrupts it.
"""

from __future__ import annotations

import os
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from quarterdeck.cli.terminal.editor import Editor
from quarterdeck.cli.terminal.footer import TICK_SECONDS, Footer
from quarterdeck.cli.terminal.keys import Keys

ESCAPE_SECONDS = 0.05
"""How long an escape character is the beginning of a sequence."""
_LOCAL = 3
"""The place of the local modes in what `termios` gives."""
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class Typing:
    """Lines that are typed below the output. One task calls `line`, others call `lend`."""

    def __init__(self, keys: Keys, footer: Footer) -> None:
        self._keys = keys
        self._footer = footer
        self._editor = Editor()
        self._normal: list[Any] | None = None
        self._reading: anyio.CancelScope | None = None
        self._back = anyio.Event()
        self._back.set()
        self._emptied = anyio.Event()
        self._done: list[str] = []
        self.typed: Callable[[], None] = lambda: None
        """Called after each key."""

    @property
    def drafting(self) -> bool:
        """Whether something is typed that was not sent yet."""
        return not self._editor.empty

    async def line(self) -> str | None:
        """The next text that was finished with Enter; None when the person ends the input."""
        while True:
            await self._back.wait()
            if self._done:
                return self._done.pop(0)
            if self._editor.ended:
                self._editor.ended = False
                return None
            with anyio.CancelScope() as self._reading:
                self._take_terminal()
                data = await self._keys.read()
                if data is None:
                    return None
                await self._apply(data)

    async def _apply(self, data: bytes) -> None:
        self._done += self._editor.take(data)
        if data.endswith(b"\x1b"):
            with anyio.move_on_after(ESCAPE_SECONDS):
                more = await self._keys.read()
                self._done += self._editor.take(more or b"")
            self._editor.flush()
        self.typed()
        self._footer.redraw()
        if self._editor.empty:
            self._emptied.set()
            self._emptied = anyio.Event()

    @asynccontextmanager
    async def lend(self, waiting: Callable[[], None]) -> AsyncIterator[None]:
        """Give the keyboard to a dialogue, once nothing is half typed.

        `waiting` is called if something is: it tells the person.
        """
        if self.drafting:
            waiting()
        while self.drafting:
            await self._emptied.wait()
        self._back = anyio.Event()
        if self._reading is not None:
            self._reading.cancel()
        self.release_terminal()
        try:
            yield
        finally:
            self._back.set()

    def _take_terminal(self) -> None:
        if self._normal is None:
            with suppress(termios.error):
                self._normal = termios.tcgetattr(self._keys.descriptor)
                mode = list(self._normal)
                # Ctrl-C stays a signal, and newlines are still written as they should be.
                mode[_LOCAL] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
                termios.tcsetattr(self._keys.descriptor, termios.TCSANOW, mode)
                self._footer.write_control(_PASTE_ON)
        self._footer.edit(self._editor)

    def release_terminal(self) -> None:
        """Give the terminal its normal mode again."""
        self._footer.edit(None)
        if self._normal is not None:
            mode, self._normal = self._normal, None
            with suppress(termios.error, OSError):
                self._footer.write_control(_PASTE_OFF)
                termios.tcsetattr(self._keys.descriptor, termios.TCSADRAIN, mode)


class Silence:
    """Where nothing can be typed but answers: what is typed meanwhile is not shown."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._normal: list[Any] | None = None

    def take_terminal(self) -> None:
        """Do not show what is typed: it would move the rows of the footer."""
        with suppress(termios.error, OSError):
            self._normal = termios.tcgetattr(self._keys.descriptor)
            mode = list(self._normal)
            mode[_LOCAL] &= ~termios.ECHO
            termios.tcsetattr(self._keys.descriptor, termios.TCSANOW, mode)

    def release_terminal(self) -> None:
        """Give the terminal its normal mode again."""
        if self._normal is not None:
            mode, self._normal = self._normal, None
            with suppress(termios.error, OSError):
                termios.tcsetattr(self._keys.descriptor, termios.TCSADRAIN, mode)

    @asynccontextmanager
    async def lend(self, waiting: Callable[[], None]) -> AsyncIterator[None]:
        """Give the keyboard to a dialogue. `waiting` is not called: nothing is half typed."""
        del waiting
        self.release_terminal()
        try:
            yield
        finally:
            self.take_terminal()


async def tick(footer: Footer) -> None:
    """Move the picture of what goes on, until cancelled."""
    while True:
        await anyio.sleep(TICK_SECONDS)
        footer.tick()


def typing_for(keys: Keys, footer: Footer | None) -> Typing | None:
    """A prompt line below the output, where there is a footer and a terminal to type at."""
    if footer is None or not os.isatty(keys.descriptor):
        return None
    return Typing(keys, footer)
