"""Text from outside, made safe to print.

Owns the one rule for all text of models, tools and files: letters stay, and whatever a terminal
would interpret becomes a visible symbol. Nothing in this package prints text from outside that has
not been through here, or through `wire.tools.one_line`.

Rich markup is no danger, because such text is never parsed as markup: it is always put into a
`rich.text.Text`, which takes it literally.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from quarterdeck.domain.marks import mark_invisible
from quarterdeck.protocol.failures import Failure, failure_of
from quarterdeck.protocol.sandbox import OFF, Network, SandboxState
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.wire.tools import one_line

if TYPE_CHECKING:  # light commands need no views
    from quarterdeck.protocol.views import SessionShape

# Control characters except newline and tab, characters that reorder or hide text, line
# separators, halves of surrogate pairs, and the invisible tag characters.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400
"""The Unicode symbols of the first 32 control characters begin here: ␛ for an escape."""


def plain(text: str) -> str:
    """The text without anything that a terminal interprets; newlines and tabs stay."""
    if "\r" in text:
        # Text that a progress bar overwrites becomes separate lines: nothing is hidden.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _OBEYED.sub(_symbol, text)


def _symbol(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else "\ufffd"


def head_lines(text: str, limit: int) -> tuple[list[str], int]:
    """The first lines of a text, safe to print, and the number of the others."""
    lines = plain(text).rstrip("\n").split("\n")
    return lines[:limit], max(0, len(lines) - limit)


def marked_lines(text: str, limit: int | None = None) -> tuple[list[str], int]:
    """The first lines of a text that a person decides by, and the number of the others.

    Invisible characters are shown with their code points: see `domain.marks`.
    """
    lines = mark_invisible(text).strip("\n").split("\n")
    return lines[:limit], max(0, len(lines) - limit) if limit is not None else 0


def count(number: int | float, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cost(usd: float) -> str:
    """An amount of money, with as many digits as it needs."""
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def rough_cost(usd: float) -> str:
    """An amount of money in whole cents, for lists."""
    return "<$0.01" if 0 < usd < 0.005 else f"${usd:,.2f}"


def age(milliseconds: float) -> str:
    """An age, for people."""
    seconds = max(0, int(milliseconds / 1000))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def moment(milliseconds: int) -> str:
    """A time in ms since 1970 as local time, for people."""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"


_NO_SANDBOX = {
    "chosen": "off",
    "not_asked": "off",
    "not_recorded": "off, not recorded",
    "not_available": "off, the machine cannot make one",
    "old_runner": "off, the runner is too old",
}


def sandbox_text(state: SandboxState) -> str:
    """The sandbox of a run in words: `protect (landlock)`."""
    if state.mode == OFF:
        return _NO_SANDBOX.get(state.reason, "off")
    return f"{state.mode} ({state.kind}{_network_text(state.network)})"


def _network_text(network: Network) -> str:
    if network == "all":
        return ""
    return ", network: model" if network == "model" else f", network: {', '.join(network)}"


_STATE_TEXTS = {SessionState.WAITING: "waiting for you", SessionState.LIMITED: "rate limited"}


def state_text(state: SessionState) -> str:
    """The state of a session in words."""
    return _STATE_TEXTS.get(state, state.value)


_FAILURE_TEXTS = {
    Failure.NOT_STARTED: "did not start",
    Failure.CRASHED: "crashed",
    Failure.LOGIN: "needs login",
    Failure.TURN: "failed",
}


def session_state(shape: SessionShape) -> str:
    """What a session does, or how it or its last turn ended, as the web app says it."""
    failure = failure_of(shape)
    if shape.state is SessionState.ENDED and failure in {Failure.LOGIN, Failure.TURN}:
        return f"ended: {_FAILURE_TEXTS[failure]}"
    if shape.state is SessionState.IDLE:
        if shape.budgets:
            return "budget spent"
        if any(task.background for task in shape.holds.tasks):
            return "in background"
    return state_text(shape.state) if failure is None else _FAILURE_TEXTS[failure]


def call_text(tool: str, title: str) -> str:
    """A call in one line. Many titles are the tool's name, or begin with it."""
    if title == tool or title.startswith(f"{tool} "):
        return one_line(title, 300)
    return f"{one_line(tool, 40)}: {one_line(title, 300)}"
