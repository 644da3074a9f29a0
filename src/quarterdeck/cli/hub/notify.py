"""Notifications of the desktop or the terminal, for a person who is not looking.

Owns which channel a terminal or desktop supports, and that the text is harmless. The text comes
from an agent: it is cut, stripped of everything that a terminal interprets, and passed to a program
only as an argument, never as part of a script.

A terminal reports its focus only through its input, which `attach` leaves to the person. So the
time of the last typed line decides whether they seem to be away.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

import anyio
from msgspec import Struct

from quarterdeck.cli.terminal.text import plain
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.events import AskKind, AskOpened, Event, RunEnded, TurnEnded

AWAY_SECONDS = 30.0
"""A person who has typed nothing for so long may be away."""
PROGRAM_SECONDS = 2.0
LONGEST = 200
BELL = "\a"

_OSC_9 = frozenset({"iterm.app", "wezterm", "ghostty"})
"""`TERM_PROGRAM` of terminals that show the text of an OSC 9."""
_OSC_777 = ("foot", "rxvt", "contour")
"""Prefixes of `TERM` of terminals that show title and text of an OSC 777."""
_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
"""For osascript. The texts are its arguments, and are never parsed."""


class Channel(Struct, frozen=True):
    """How a person is notified: by an escape sequence, by a program, or both."""

    osc: int | None = None
    program: str | None = None


def channel_for(
    env: Mapping[str, str],
    *,
    platform: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
) -> Channel:
    """The channel for this terminal and desktop."""
    if env.get("TMUX") or env.get("TERM", "").startswith(("screen", "tmux")):
        return Channel(program=_program(env, platform, which))  # they swallow the sequences
    if env.get("TERM_PROGRAM", "").lower() in _OSC_9 or env.get("TERM") == "xterm-kitty":
        return Channel(osc=9)
    if env.get("VTE_VERSION") or env.get("TERM", "").startswith(_OSC_777):
        return Channel(osc=777)
    return Channel(program=_program(env, platform, which))


def _program(
    env: Mapping[str, str], platform: str, which: Callable[[str], str | None]
) -> str | None:
    if env.get("SSH_CONNECTION"):
        return None  # this desktop is not the person's
    if platform == "darwin":
        return which("osascript")
    if env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"):
        return which("notify-send")
    return None


def argv_of(program: str, title: str, text: str) -> list[str]:
    """The command line of a program. The texts come last, and cannot be taken for options."""
    if os.path.basename(program) == "osascript":  # noqa: PTH119 - it is a name and no file here
        script = [part for line in _SCRIPT for part in ("-e", line)]
        # A text with a leading dash would be an option of osascript.
        return [program, *script, "--", title, text]
    return [program, "--app-name=quarterdeck", "--", title, text]


def sequence(osc: int, title: str, text: str) -> str:
    """The escape sequence for a terminal."""
    if osc == 777:
        # Semicolons separate the parts.
        return f"\x1b]777;notify;{title.replace(';', ',')};{text}{BELL}"
    # A leading number would be another command.
    return f"\x1b]9;{title}: {text}{BELL}"


def one_line_of(text: str) -> str:
    """A text from outside as one line of a notification."""
    line = " ".join(plain(text).split())
    # Escapes are symbols by now; remove other invisible characters.
    line = "".join(letter for letter in line if letter.isprintable())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def message_for(event: Event) -> str | None:
    """The text for a person who is not looking; None if the event needs no notification."""
    match event:
        case AskOpened(title=title, ask_kind=kind):
            what = "has a plan" if kind is AskKind.PLAN else "asks"
            return f"{what}: {title}" if title else what
        case TurnEnded(failed=True, outcome=outcome):
            return f"the turn failed: {outcome}"
        case TurnEnded():
            return "the turn has ended"
        case RunEnded(clean=False):
            return f"the agent ended: {end_text(event)}"
        case _:
            return None


class Notifier:
    """Notifies the person. `always`: also when they have just typed; None: never.

    `start` runs a program, as `run_program` does, without waiting for its end.
    """

    def __init__(
        self,
        out: IO[str],
        name: str,
        start: Callable[[Sequence[str]], None],
        *,
        always: bool | None = False,
        channel: Channel | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out
        self._title = one_line_of(name) or "quarterdeck"
        self._start = start
        self._always = always
        self._channel = channel or channel_for(os.environ)
        self._clock = clock
        self._last_typed = clock()

    def note_typing(self) -> None:
        """The person has typed a line."""
        self._last_typed = self._clock()

    def observe(self, event: Event) -> None:
        """Notify of this event, if it matters and the person seems to be away."""
        if self._always is None or (text := message_for(event)) is None:
            return
        if not self._always and self._clock() - self._last_typed < AWAY_SECONDS:
            return
        self._notify(one_line_of(text))

    def _notify(self, text: str) -> None:
        if self._channel.osc is not None:
            self._out.write(sequence(self._channel.osc, self._title, text))
        self._out.write(BELL)
        self._out.flush()
        if self._channel.program is not None:
            self._start(argv_of(self._channel.program, self._title, text))


async def run_program(argv: Sequence[str]) -> None:
    """Run a program that ends at once. Failures and timeouts are ignored."""
    with anyio.move_on_after(PROGRAM_SECONDS), contextlib.suppress(OSError):
        await anyio.run_process(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
