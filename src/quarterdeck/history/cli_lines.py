"""Lines of the CLI that a story shows in a way of their own. Pure.

Owns the output of slash commands, the notices that the CLI's own terminal would show, and why a
turn begins that nobody prompted. `history.story` is above. The web app has the same in
`web/src/state/cliLines.ts`.
"""

from __future__ import annotations

import re
from typing import Literal

from quarterdeck.protocol import events as ev
from quarterdeck.wire.base import Message
from quarterdeck.wire.messages import Assistant
from quarterdeck.wire.notices import (
    HookResponse,
    Informational,
    Notification,
    SessionWritesLost,
)
from quarterdeck.wire.system import Init, ModelRefusalFallback
from quarterdeck.wire.tasks import TaskNotification

Tone = Literal["plain", "good", "warn", "bad"]


class Turns:
    """Which prompts have their turn still to come, and what may start one that nobody prompted."""

    def __init__(self) -> None:
        self._sent: set[str] | None = None
        """None: not all of them are known."""
        self._cause = ""

    def begins(self, event: ev.Event, message: Message | None) -> str:
        """Why a turn begins with this event that nobody prompted; empty if none does."""
        match event:
            case ev.PromptSent(prompt=prompt):
                self._sent = (self._sent or set()) | {prompt}
            case ev.PromptCancelled(prompt=prompt):
                (self._sent or set()).discard(prompt)
            case ev.TurnEnded(prompts=prompts):
                self._sent = (self._sent or set()) - set(prompts)
                self._cause = ""
            case ev.RunStarted() | ev.RunEnded():
                self._sent, self._cause = set(), ""
            case ev.PeerPrompted():
                self._cause = ""
            case _:
                return self._in_line(message)
        return ""

    def _in_line(self, message: Message | None) -> str:
        match message:
            case TaskNotification(summary=summary, status=status):
                self._cause = summary or f"Background task: {status}"
            case Init():
                cause, self._cause = self._cause, ""
                return cause if self._sent is not None and not self._sent else ""
            case _:
                pass
        return ""


_OUTPUT = re.compile(
    r"<local-command-(?P<way>stdout|stderr)>(?P<text>.*)</local-command-(?P=way)>", re.DOTALL
)
_TOLD = frozenset({"Compacted"})
"""Outputs that another entry tells already."""
_COMMAND = re.compile(r"/[^\s/]+")


def command_output(text: str) -> str:
    """The output of a slash command, from the echo in which older versions wrap it."""
    found = _OUTPUT.fullmatch(text.strip())
    output = found["text"].strip() if found else ""
    return "" if output in _TOLD else output


def command_in(prompt: str) -> str:
    """The slash command that a prompt is; empty if it is none."""
    found = _COMMAND.match(prompt)
    return found[0] if found else ""


def command_of(message: Assistant, prompted: str) -> str:
    """The slash command whose output a message is; empty for an answer of the model."""
    if message.local_command_source is None:
        return ""
    run = message.local_command_run
    return f"/{run.command}" if run is not None and run.command else prompted


def cli_notice(message: Message) -> tuple[str, Tone] | None:
    """What the CLI's own terminal would show as a notice."""
    tone: Tone = "plain"
    match message:
        case Informational(content=text, level=level):
            tones: dict[str, Tone] = {"warning": "warn", "error": "bad"}
            tone = tones.get(level, "plain")
        case Notification(text=text, color=color):
            tone = "bad" if color == "error" else "plain"
        case HookResponse(outcome="error", hook_name=name, stderr=stderr, output=output):
            text, tone = f"The hook {name} failed: {stderr or output}", "warn"
        case ModelRefusalFallback(content=text):
            tone = "warn"
        case SessionWritesLost():
            text, tone = "The CLI could not write all of the session to its disk.", "bad"
        case _:
            return None
    return (text.strip(), tone) if text.strip() else None
