"""A session's events on the terminal, as `quarterdeck run` shows them.

`history.story` says what an event means; `terminal.screen` prints. Owns the choice of notices, and
how live text is continued by the message that supersedes it. Above are `attach` and `log`.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import count, moment
from quarterdeck.history.story import Line, Notice, Prompt, read_event
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, EventShape
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolUseBlock
from quarterdeck.wire.messages import Assistant, StreamEvent
from quarterdeck.wire.tools import one_line

LAST_LINES = 5
"""The last lines of stderr that are shown of an agent that failed; the event has all of them."""
_STYLES = {"plain": "dim", "good": "dim", "warn": "yellow", "bad": "red"}
_HIDDEN = frozenset({"session.created", "prompt.changed", "turn.ended"})
"""Notices that the terminal leaves out: the CLI's own messages show the same."""
_IN_DIALOGUES = frozenset({"ask.opened", "ask.answered", "ask.withdrawn"})
"""Notices that a dialogue at the keyboard replaces."""


class Story:
    """Shows one session's events in their order."""

    def __init__(self, screen: Screen, *, dialogues: bool = False) -> None:
        self._screen = screen
        self._hidden = _HIDDEN | _IN_DIALOGUES if dialogues else _HIDDEN
        self.typed_here: set[str] = set()
        """Prompts that this terminal shows already."""
        self._printed: dict[tuple[str, int, bool], str] = {}
        self._calls: set[str] = set()

    def show(self, shape: EventShape) -> None:
        """Show what an event means to a person, if it means anything."""
        match read_event(shape.event, shape.at):
            case Prompt(id=id_, text=text, others=others) if id_ not in self.typed_here:
                more = f"\n[and {count(others, 'block')} without text]" if others else ""
                self._screen.echo_prompt(text + more)
            case Line(message=message):
                self._show_message(message)
            case Notice() as notice if notice.code not in self._hidden:
                self._show_notice(notice)
            case _:
                pass

    def _show_message(self, message: Message) -> None:
        if isinstance(message, Assistant):
            self._printed.clear()
            self._calls |= {
                block.id for block in message.message.content if isinstance(block, ToolUseBlock)
            }
        self._screen.show(message)

    def _show_notice(self, notice: Notice) -> None:
        text = notice.text
        if notice.code == "ask.opened":
            text += f" ({notice.subject})"
        if notice.until is not None:
            text += f" until {moment(notice.until)}"
        for line in notice.details[-LAST_LINES:]:
            text += f"\n  stderr: {one_line(line, 300)}"
        self._screen.note(text, _STYLES[notice.tone])

    def live(self, frame: Live) -> None:
        """Show text that is still being made."""
        for delta in frame.deltas:
            if delta.message in self._calls:
                continue  # a subagent's: only its complete messages are shown
            key = (delta.message, delta.block, delta.thinking)
            before = self._printed.get(key, "")
            if frame.whole:
                text = delta.text.removeprefix(before)
                self._printed[key] = delta.text
            else:
                text = delta.text
                self._printed[key] = before + text
            if text:
                self._screen.show(_as_stream_event(delta, text))


def _as_stream_event(delta: Deltas, text: str) -> StreamEvent:
    kind, name = ("thinking_delta", "thinking") if delta.thinking else ("text_delta", "text")
    event = {
        "type": "content_block_delta",
        "index": delta.block,
        "delta": {"type": kind, name: text},
    }
    return StreamEvent(event_json=Raw(msgspec.json.encode(event)))
