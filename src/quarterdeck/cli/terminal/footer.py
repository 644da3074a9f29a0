"""The last rows of a terminal, below all output: text being written, what goes on, the prompt line.

Owns these rows: they are erased before other output is printed and drawn again below it, in one
write, so that a line that a person types is never torn. Every row is cut to the terminal's width.
Only `screen` prints above it. It works at terminals that can move the cursor; others have none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from quarterdeck.cli.exits import OutputClosed
from quarterdeck.cli.terminal.editor import Editor
from quarterdeck.cli.terminal.text import plain

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_FRAMES = "-\\|/"
TICK_SECONDS = 0.125
LOW = 10
"""A terminal with so few rows has no empty row above the prompt."""
SOON_SECONDS = 0.05
"""Text that is being written is not drawn more often than this."""
MARK = "> "
_HINT = "Ctrl-C interrupts"


def footer_for(console: Console) -> Footer | None:
    """A footer, if the console is a terminal that can move the cursor."""
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    return Footer(console)


class Footer:
    """The rows at the bottom. Nothing is drawn before there is something to show."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._frames = cycle(ASCII_FRAMES if console.options.ascii_only else FRAMES)
        self._frame = next(self._frames)
        self._tail: Callable[[int], list[Text]] | None = None
        self._stale = False
        self._last_drawn = 0.0
        self._what = ""
        self._since: float | None = None
        self._editor: Editor | None = None
        self._mark = MARK
        self._drawn: list[int] = []
        self._shown = ""
        self._at = 0
        self._hidden = False
        self._above = 0

    # --- what is shown --------------------------------------------------------------------

    @property
    def working(self) -> bool:
        """Whether it shows that something goes on."""
        return self._since is not None

    def begin_work(self, what: str = "working", ago: float = 0.0) -> None:
        """Show that something goes on; since so many seconds, if nothing did so far."""
        if self._since is None:
            self._since = self._clock() - max(0.0, ago)
        self.say(what)

    def say(self, what: str) -> None:
        """Show what goes on, if anything does."""
        self._what = plain(what).replace("\n", " ").replace("\t", " ")
        if self._since is not None:
            self.redraw()

    def end_work(self) -> None:
        """Nothing goes on any more."""
        if self._since is not None:
            self._since = None
            self.redraw()

    def set_tail(self, tail: Callable[[int], list[Text]] | None) -> None:
        """Show text that is still being written: `tail` gives its lines for a width.

        It is called again by the next `tick` if it was drawn a moment ago: making the lines takes
        longer than a model takes for the next word.
        """
        if tail is None and self._tail is None:
            return
        self._tail, self._stale = tail, True
        if not self._above:
            self._draw_soon()

    def edit(self, editor: Editor | None, mark: str = MARK) -> None:
        """Show the line that a person types; None: nobody can type."""
        self._editor, self._mark = editor, mark
        self.redraw()

    def tick(self) -> None:
        """Draw the next picture of what goes on; time has passed."""
        if self._since is None and not self._stale:
            return
        self._frame = next(self._frames)
        if self._stale:
            self.redraw()
        elif not self._above and not self._hidden and self._drawn:
            self._write(self._redrawing_status())

    # --- drawing --------------------------------------------------------------------------

    @contextmanager
    def above(self) -> Iterator[None]:
        """Print above the footer. May be nested."""
        if self._above:
            yield
            return
        self._above += 1
        try:
            with self._console.capture() as captured:
                yield
        finally:
            self._above -= 1
            if printed := captured.get():
                self._write(self._erase_codes() + printed + self._draw_codes())
            elif self._stale:
                self._draw_soon()
            else:
                self.redraw()

    def _draw_soon(self) -> None:
        """Draw now, or with the next tick if it was drawn a moment ago."""
        if self._tail is None or self._clock() - self._last_drawn >= SOON_SECONDS:
            self.redraw()

    def hide(self) -> None:
        """Remove it, until `unhide`: another program has the terminal."""
        if not self._hidden:
            self._write(self._erase_codes())
            self._hidden = True

    def unhide(self) -> None:
        """Show it again."""
        self._hidden = False
        self.redraw()

    def close(self) -> None:
        """Remove it for good."""
        self._tail, self._since, self._editor = None, None, None
        self.hide()

    def redraw(self) -> None:
        """Draw it, as it is now; nothing is written if it looks the same."""
        if self._above or self._hidden:
            return
        before, erasing = self._shown if self._drawn else None, self._erase_codes()
        if (drawing := self._draw_codes()) != before:
            self._write(erasing + drawing)

    def write_control(self, sequence: str) -> None:
        """Write a sequence that sets a mode of the terminal, and shows nothing."""
        self._write(sequence)

    def _write(self, text: str) -> None:
        if not text:
            return
        try:
            self._console.file.write(text)
            self._console.file.flush()
        except BrokenPipeError as error:
            raise OutputClosed from error

    def _erase_codes(self) -> str:
        if not self._drawn:
            return ""
        # A terminal that has become narrower has wrapped the rows.
        width = max(1, self._console.width)
        rows = sum(max(1, -(-size // width)) for size in self._drawn[: self._at])
        self._drawn = []
        return f"\r\x1b[{rows}A\x1b[J" if rows else "\r\x1b[J"

    def _draw_codes(self) -> str:
        self._stale = False
        if self._hidden:
            return ""
        self._last_drawn = self._clock()
        width, height = max(2, self._console.width), max(2, self._console.height)
        status = self._status(width)
        prompt, column = self._prompt(width)
        below = [line for line in (status, prompt) if line is not None]
        if below and height > LOW:
            below.insert(0, Text())
        room = max(1, height - 1 - len(below))
        tail = self._tail(width - 1) if self._tail is not None else []
        rows = [_cut(line, width) for line in tail[-room:]] + below
        if not rows:
            self._shown = ""
            return ""
        with self._console.capture() as captured:
            for number, row in enumerate(rows):
                end = "" if number == len(rows) - 1 else "\n"
                self._console.print(row, end=end, no_wrap=True, overflow="crop", crop=True)
        self._drawn = [cell_len(row.plain) for row in rows]
        self._at = len(rows) - 1
        moved = f"\r\x1b[{column}C" if prompt is not None and column else ""
        self._shown = captured.get() + moved
        return self._shown

    def _redrawing_status(self) -> str:
        """Only the row of the status: ticks are many, and the other rows have not changed."""
        width = max(2, self._console.width)
        status = self._status(width)
        if status is None or max(self._drawn) >= width:
            return self._erase_codes() + self._draw_codes()
        with self._console.capture() as captured:
            self._console.print(status, end="", no_wrap=True, overflow="crop", crop=True)
        self._shown = ""
        if self._editor is None:
            self._drawn[-1] = cell_len(status.plain)
            return f"\r{captured.get()}\x1b[K"
        self._drawn[-2] = cell_len(status.plain)
        _, column = self._prompt(width)
        right = f"\x1b[{column}C" if column else ""
        return f"\x1b[1A\r{captured.get()}\x1b[K\x1b[1B\r{right}"

    def _status(self, width: int) -> Text | None:
        if self._since is None:
            return None
        elapsed = elapsed_text(self._clock() - self._since)
        line = Text.assemble((self._frame, "yellow"), f" {self._what} ", (f"· {elapsed}", "dim"))
        if cell_len(line.plain) + len(_HINT) + 4 < width:
            line.append(f" · {_HINT}", "dim")
        return _cut(line, width)

    def _prompt(self, width: int) -> tuple[Text | None, int]:
        """The prompt line, and the column of its cursor."""
        if self._editor is None:
            return None, 0
        room = max(1, width - cell_len(self._mark) - 1)
        before = self._editor.text[: self._editor.cursor].replace("\n", "⏎").replace("\t", " ")
        after = self._editor.text[self._editor.cursor :].replace("\n", "⏎").replace("\t", " ")
        # The part around the cursor is shown: at least its left side as far as it fits.
        before, after = before[-room:], after[:room]
        while cell_len(before) > room:
            before = before[1:]
        left = room - cell_len(before)
        shown = chop_cells(after, left)[0] if after and left else ""
        line = Text.assemble((self._mark, "bold"), before, shown)
        return line, cell_len(self._mark + before)


def _cut(line: Text, width: int) -> Text:
    cut = line.copy()
    cut.truncate(width - 1, overflow="ellipsis")
    cut.no_wrap = True
    return cut


def elapsed_text(seconds: float) -> str:
    """A time that passes: `9 s`, `1 min 05 s`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
