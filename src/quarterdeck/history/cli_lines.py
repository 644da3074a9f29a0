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
from quarterdeck.wire.info import Origin, OriginKind
from quarterdeck.wire.internal import CommandLifecycle
from quarterdeck.wire.messages import Assistant, Result, User
from quarterdeck.wire.notices import (
    HookResponse,
    Informational,
    Notification,
    SessionWritesLost,
)
from quarterdeck.wire.system import Init, ModelRefusalFallback
from quarterdeck.wire.tasks import TaskNotification

Tone = Literal["plain", "good", "warn", "bad"]

_WAKE_UPS = {
    "loop_wakeup": "A wake-up of the agent's loop.",
    "schedule_wakeup": "A wake-up that the agent scheduled.",
}
_NOTIFICATIONS = {
    "scheduled-trigger": "A scheduled time",
    "peer-send-message": "A message of another session",
    "session-inbox": "A message for this session",
    "projects-relay": "A message for this project",
}
_ORIGINS = {
    OriginKind.COORDINATOR: "The coordinator of the agent's team.",
    OriginKind.AUTO_CONTINUATION: "Claude Code continued by itself.",
    OriginKind.OBSERVER: "An observer of the session.",
}


def cause_of(origin: Origin | None) -> str:
    """Why a turn began that nobody prompted, as the CLI says it; empty if it does not."""
    if origin is None:
        return ""
    if origin.kind == OriginKind.CHANNEL:
        return f"A message from the channel {origin.server or 'without a name'}."
    if origin.kind == OriginKind.TASK_NOTIFICATION:
        what = _NOTIFICATIONS.get(origin.subkind or "", "A background task")
        return f"{what}: {origin.fire_reason}" if origin.fire_reason else f"{what}."
    return _ORIGINS.get(origin.kind, "")


class Turns:
    """Which prompts have their turn still to come, and what may start one that nobody prompted."""

    def __init__(self) -> None:
        self._sent: set[str] | None = None
        """None: not all of them are known."""
        self._cause = ""
        self._owed = False
        """A turn runs that nobody prompted, and its cause is not told yet."""

    def begins(self, event: ev.Event, message: Message | None) -> str:
        """Why a turn begins with this event that nobody prompted; empty if none does."""
        match event:
            case ev.PromptSent(prompt=prompt):
                self._sent = (self._sent or set()) | {prompt}
            case ev.PromptCancelled(prompt=prompt):
                (self._sent or set()).discard(prompt)
            case ev.TurnEnded(prompts=prompts):
                self._sent = (self._sent or set()) - set(prompts)
                self._cause, self._owed = "", False
            case ev.RunStarted() | ev.RunEnded():
                self._sent, self._cause, self._owed = set(), "", False
            case ev.PeerPrompted():
                self._cause, self._owed = "", False
            case _:
                return self._in_line(message)
        return ""

    def _in_line(self, message: Message | None) -> str:
        match message:
            case TaskNotification(summary=summary, status=status):
                self._cause = summary or f"Background task: {status}"
            case Init():
                cause, self._cause = self._cause, ""
                if self._sent is None or self._sent:
                    return ""
                self._owed = not cause
                return cause
            case CommandLifecycle(state="started", wakeup_source=str(source)):
                return self._report(_WAKE_UPS.get(source, _WAKE_UPS["schedule_wakeup"]))
            case User(is_replay=True):
                return self._report(cause_of(message.origin))
            case Result() if self._owed:
                return self._report(cause_of(message.origin))
            case _:
                pass
        return ""

    def _report(self, cause: str) -> str:
        """Tell a cause now if its turn runs, or else when it begins."""
        if self._owed and cause:
            self._owed = False
            return cause
        self._cause = cause or self._cause
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
