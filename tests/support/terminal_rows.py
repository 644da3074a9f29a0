"""What a person sees at a terminal: the rows, after all movements of the cursor. Nothing scrolls
away.
"""

from __future__ import annotations

import re

from rich.cells import cell_len

_PART = re.compile(
    r"\x1b\[(?P<args>[0-9;?]*)(?P<end>[A-Za-z])|\x1b\][^\a]*\a|(?P<text>[^\x00-\x1f\x7f]+)|."
    r"|\n",
    re.DOTALL,
)


class Rows:
    """The subset of a terminal that the commands use; anything else is an error."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[list[str]] = [[]]
        self._row = 0
        self._column = 0

    def feed(self, data: str) -> None:
        """Take what was printed."""
        for part in _PART.finditer(data):
            if (text := part["text"]) is not None:
                self._print(text)
            elif part["end"] is not None:
                self._move(part["args"], part["end"])
            elif part[0] == "\r":
                self._column = 0
            elif part[0] == "\n":
                self._down(1)
            elif part[0] == "\b":
                self._column = max(0, self._column - 1)
            elif part[0] != "\a" and not part[0].startswith("\x1b]"):
                raise AssertionError(f"the terminal was sent {part[0]!r}")

    @property
    def text(self) -> str:
        """All rows, without the blanks at their ends."""
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip("\n")

    def _print(self, text: str) -> None:
        for character in text:
            size = cell_len(character)
            if size == 0:
                continue
            if self._column + size > self._width:
                self._down(1)
                self._column = 0
            row = self._rows[self._row]
            row += [" "] * (self._column + size - len(row))
            row[self._column : self._column + size] = [character] + [""] * (size - 1)
            self._column += size

    def _down(self, count: int) -> None:
        self._row += count
        while len(self._rows) <= self._row:
            self._rows.append([])

    def _move(self, args: str, end: str) -> None:
        count = int(args) if args.isdecimal() else 1
        match end:
            case "A":
                assert count <= self._row, "the cursor leaves the terminal"
                self._row -= count
            case "B":
                self._down(count)
            case "C":
                self._column = min(self._width - 1, self._column + count)
            case "J":
                del self._rows[self._row + 1 :]
                del self._rows[self._row][self._column :]
            case "K":
                del self._rows[self._row][self._column :]
            case "m" | "h" | "l":
                pass
            case _:
                raise AssertionError(f"the terminal was sent a sequence with {args!r} and {end!r}")
