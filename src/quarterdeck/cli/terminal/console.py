"""The consoles that commands print to: text for people.

Owns how stdout and stderr are written: in any encoding, with colours only where they are wanted
(Rich honours NO_COLOR), and without a traceback when the reader has gone.
"""

from __future__ import annotations

import io
import sys
from typing import NoReturn, TextIO

from rich.console import Console

from quarterdeck.cli.exits import OutputClosed


class OurConsole(Console):
    """A console that raises `OutputClosed` when its reader has gone, instead of exiting."""

    def on_broken_pipe(self) -> NoReturn:
        """Called by Rich, which would raise SystemExit inside our tasks."""
        raise OutputClosed


def console_for(stream: TextIO) -> Console:
    """A console on stdout or stderr, without markup and without automatic highlighting."""
    if isinstance(stream, io.TextIOWrapper):
        # A terminal that cannot show a character shows a question mark.
        stream.reconfigure(errors="replace")
    return OurConsole(file=stream, highlight=False, markup=False, emoji=False)


def stdout() -> Console:
    """The console for results."""
    return console_for(sys.stdout)


def stderr() -> Console:
    """The console for everything else."""
    return console_for(sys.stderr)
