"""The last lines that a process wrote to its stderr, in bounded memory.

`SubprocessLink` feeds it; it knows bytes and lines, and not what they mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

KEPT_LINES = 50
LONGEST_LINE = 4096  # bytes; a minified stack trace can be megabytes in one line


class StderrTail:
    """Cuts bytes into lines, keeps the last ones, and tells each to `on_line`."""

    def __init__(self, on_line: Callable[[str], object] | None = None) -> None:
        self._on_line = on_line
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._partial = bytearray()
        self._skipping = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first, with the unfinished one at the end."""
        rest = (self._text(bytes(self._partial)),) if self._partial else ()
        return (*self._lines, *rest)[-KEPT_LINES:]

    def feed(self, data: bytes) -> None:
        """Take what was read."""
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
        room = LONGEST_LINE - len(self._partial)
        self._partial += piece[:room]
        self._skipping = self._skipping or len(piece) > room

    def _finish(self) -> None:
        text = self._text(bytes(self._partial)) + (" …" if self._skipping else "")
        self._partial.clear()
        self._skipping = False
        if text.strip():
            self._lines.append(text)
            if self._on_line is not None:
                self._on_line(text)

    @staticmethod
    def _text(line: bytes) -> str:
        return line.decode("utf-8", "replace").rstrip("\r")
