"""A session's events on the terminal, looking as they do in `quarterdeck run`.

Owns what of an event is shown and how live text goes over into the message that supersedes it.
`cli.screen` prints. Above are `attach` and `log`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Raw

from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import count
from quarterdeck.hub.supervision.budgets import sentence
from quarterdeck.protocol import events
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, EventShape
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import ToolUseBlock, decode_user_body
from quarterdeck.wire.messages import Assistant, StreamEvent, User
from quarterdeck.wire.tools import one_line

LAST_LINES = 5
"""Of what an agent that ended badly wrote to stderr; all of it is in the event."""


class Story:
    """Shows one session's events in their order."""

    def __init__(self, screen: Screen, *, dialogues: bool = False) -> None:
        self._screen = screen
        self._dialogues = dialogues
        self.typed_here: set[str] = set()
        """Prompts that stand on this terminal already."""
        self._printed: dict[tuple[str, int, bool], str] = {}
        self._calls: set[str] = set()

    def show(self, shape: EventShape) -> None:
        """Show what an event means to a person, if it means anything."""
        match shape.event:
            case events.Recalled(run=events.IMPORTED, line=line) if (
                typed := _typed(line)
            ) is not None:
                self._screen.said(typed)
            case events.Said(line=line) | events.Recalled(line=line):
                self._said(line)
            case events.SaidBroken(error=error):
                self._screen.note(f"a line of the CLI could not be read: {one_line(error)}", "red")
            case events.PromptQueued(prompt=prompt, content=content):
                if prompt not in self.typed_here:
                    self._screen.said(_text(content))
            case events.PromptCancelled(by=by):
                self._screen.note(f"a prompt was taken back by {one_line(by, 60)}")
            case event if (told := told_of(event, self._dialogues)) is not None:
                self._screen.note(*told)
            case _:
                pass

    def _said(self, line: Raw) -> None:
        message = from_cli(bytes(line))
        if isinstance(message, Assistant):
            self._printed.clear()
            self._calls |= {
                block.id for block in message.message.content if isinstance(block, ToolUseBlock)
            }
        self._screen.show(message)

    def live(self, frame: Live) -> None:
        """Show text that is still being made."""
        for delta in frame.deltas:
            if delta.message in self._calls:
                continue  # a subagent's: its whole messages are shown
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


def told_of(event: events.Event, dialogues: bool) -> tuple[str, str] | None:
    """The note for an event, and its style; None for what needs none.

    Where questions are asked in dialogues, that they were opened and answered is seen there.
    """
    match event:
        case events.RunEnded(reason=reason, clean=clean, stderr=stderr):
            words = "".join(f"\n  stderr: {one_line(line, 300)}" for line in stderr[-LAST_LINES:])
            said = "" if clean else words
            return f"the agent has ended: {reason}{said}", "dim" if clean else "yellow"
        case events.StartAfresh(by=by):
            return f"a new conversation begins, for {one_line(by, 60)}", "dim"
        case events.RateLimited(status="rejected", limit=limit, resets_at=resets_at):
            until = "" if resets_at is None else f" until {moment(resets_at)}"
            return f"the {one_line(limit or 'account', 60)} limit is reached{until}", "yellow"
        case events.BudgetReached():
            return sentence(event), "red"
        case events.Alarmed(text=text, action=action):
            done = f" ({one_line(action, 100)})" if action else ""
            return f"{one_line(text, 200)}{done}", "red"
        case events.AlarmEnded():
            return "it is heard again", "dim"
        case events.LinkLost(reason=reason):
            return reason, "yellow"
        case events.LinkFound(lost=lost):
            return ("it is there again" + ("; something it said is lost" if lost else ""), "dim")
        case events.AskOpened(ask=ask, title=title, tool=tool) if not dialogues:
            return f"asks: {one_line(tool, 60)}: {one_line(title, 300)} ({ask})", "yellow"
        case events.AskAnswered(by=by, allowed=allowed) if not dialogues:
            return f"{'allowed' if allowed else 'denied'} by {one_line(by, 60)}", "dim"
        case events.AskWithdrawn(reason=reason) if not dialogues:
            return f"the question was withdrawn: {one_line(reason, 200)}", "dim"
        case events.Decided(by="policy", verdict=verdict, title=title, reasons=reasons):
            why = one_line("; ".join(reasons), 200)
            return f"{verdict} by policy: {one_line(title, 200)} ({why})", "dim"
        case events.SessionRenamed(name=name, by=by):
            return f"renamed to «{one_line(name, 100)}» by {one_line(by, 60)}", "dim"
        case events.SessionDeleted(by=by):
            return f"the session was deleted by {one_line(by, 60)}", "yellow"
        case events.WorktreeSettled(text=text, by=by):
            return f"{one_line(text, 500)} ({one_line(by, 60)})", "dim"
        case events.Noted(level=level, text=text):
            return text, "red" if level == "error" else "yellow" if level == "warning" else "dim"
        case _:
            return None


def _typed(line: Raw) -> str | None:
    """What a person typed where we did not hear it, if the line is the echo of that."""
    message = from_cli(bytes(line))
    if not isinstance(message, User) or not message.is_replay:
        return None
    return _text(message.message.content_json)


def _text(content: Raw) -> str:
    """What a prompt says; images and the like are named, not shown."""
    body = decode_user_body(Raw(b'{"role":"user","content":%b}' % bytes(content)))
    others = sum(1 for block in body.blocks if not hasattr(block, "text"))
    return body.text + (f"\n[and {count(others, 'block')} without text]" if others else "")


def _as_stream_event(delta: Deltas, text: str) -> StreamEvent:
    kind, name = ("thinking_delta", "thinking") if delta.thinking else ("text_delta", "text")
    event = {
        "type": "content_block_delta",
        "index": delta.block,
        "delta": {"type": kind, name: text},
    }
    return StreamEvent(event_json=Raw(msgspec.json.encode(event)))


def moment(milliseconds: int) -> str:
    """When something happened, for people."""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"
