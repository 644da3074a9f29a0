"""What was said and done in a session, in order: events in, items out. Pure.

Owns what is worth telling to somebody who reads a session later. It knows the CLI's lines through
`wire`; how an item looks is known by `markdown` and `html`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.history.texts import moment_of, prompt_text
from quarterdeck.journal.base import Stored
from quarterdeck.protocol import events
from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    decode_user_body,
)
from quarterdeck.wire.messages import Assistant, User
from quarterdeck.wire.tools import describe, one_line

MOST_BLANKS = 4_000_000
"""An input is made readable if it needs no more blanks for that: the lines of one that is nested
very deep have thousands each."""

_BRACKETS = re.compile(rb"[\[\]{}]")


class Item(Value):
    """The base of all items. `at` is in ms since 1970; `inner` is of a subagent."""

    at: int
    inner: bool = False


class Prompt(Item):
    """What a person asked for. `others` counts what is no text: pictures, files."""

    text: str
    by: str = ""
    others: int = 0


class Answer(Item):
    """What the model said."""

    text: str


class Thinking(Item):
    """What the model thought."""

    text: str


class Call(Item):
    """A tool is called. `input` is JSON, made readable."""

    tool: str
    title: str
    input: str


class Outcome(Item):
    """What a call gave."""

    tool: str
    title: str
    text: str
    failed: bool = False


class Note(Item):
    """Something that happened, in a sentence."""

    text: str


AnyItem = Prompt | Answer | Thinking | Call | Outcome | Note


class StoryFold:
    """Tells one session's events in their order."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str]] = {}

    def tell(self, stored: Stored) -> Iterator[AnyItem]:
        """What an event means to a reader, if it means anything."""
        at = stored.at
        match stored.event:
            case events.PromptQueued(content=content, by=by):
                body = decode_user_body(Raw(b'{"role":"user","content":%b}' % bytes(content)))
                others = sum(not isinstance(block, TextBlock) for block in body.blocks)
                yield Prompt(at=at, text=body.text, by=by, others=others)
            case events.PromptChanged(content=content, by=by):
                yield Note(at=at, text=f"{by} changed a prompt to: {prompt_text(content)}")
            case events.PromptCancelled(by=by):
                yield Note(at=at, text=f"{by} took a prompt back.")
            case events.Said(line=line):
                yield from self._said(bytes(line), at, imported=False)
            case events.Recalled(run=run, line=line):
                yield from self._said(bytes(line), at, imported=run == events.IMPORTED)
            case events.SaidBroken(text=text):
                yield Note(at=at, text=f"A line that is no JSON: {one_line(text)}")
            case event:
                if (told := _note(event)) is not None:
                    yield Note(at=at, text=told)

    def _said(self, line: bytes, at: int, *, imported: bool) -> Iterator[AnyItem]:
        match from_cli(line):
            case Assistant(parent_tool_use_id=parent, timestamp=timestamp) as message:
                at = (moment_of(timestamp) if imported else None) or at
                for block in message.blocks:
                    yield from self._block(block, at, inner=parent is not None)
            case User(parent_tool_use_id=parent, timestamp=timestamp) as message:
                at = (moment_of(timestamp) if imported else None) or at
                if message.is_replay:
                    if imported:  # of others, the prompt is an event of its own
                        others = sum(not isinstance(block, TextBlock) for block in message.blocks)
                        yield Prompt(at=at, text=message.text, others=others)
                    return
                for block in message.blocks:
                    yield from self._block(block, at, inner=parent is not None, user=True)
            case _:
                return

    def _block(
        self, block: Block | UnknownPart, at: int, *, inner: bool, user: bool = False
    ) -> Iterator[AnyItem]:
        match block:
            case TextBlock(text=text) if user:
                yield Note(at=at, text=text, inner=inner)
            case TextBlock(text=text) if text.strip():
                yield Answer(at=at, text=text, inner=inner)
            case ThinkingBlock(thinking=text) if text.strip():
                yield Thinking(at=at, text=text, inner=inner)
            case ToolUseBlock(id=id_, name=name, input=given):
                title = describe(name, given).title
                self._calls[id_] = (name, title)
                yield Call(at=at, tool=name, title=title, input=_readable(given), inner=inner)
            case ToolResultBlock(tool_use_id=id_) as result:
                tool, title = self._calls.pop(id_, ("", ""))
                failed = result.is_error is True
                text = result.text
                yield Outcome(at=at, tool=tool, title=title, text=text, failed=failed, inner=inner)
            case _:
                return


def _note(event: events.Event) -> str | None:
    match event:
        case events.SessionCreated(by=by, parent=None):
            return f"The session was made by {by}."
        case events.SessionCreated(by=by, parent=parent):
            return f"The session was forked from {parent} by {by}."
        case events.SessionRenamed(name=name, by=by):
            return f"{by} named it «{name}»."
        case events.AskAnswered(by=by, allowed=allowed):
            return f"{'Allowed' if allowed else 'Denied'} by {by}."
        case events.AskOpened(tool=tool, title=title):
            return f"It asked: {tool}: {title}"
        case events.AskWithdrawn(reason=reason):
            return f"The question was withdrawn: {reason}"
        case events.TurnEnded(failed=True, outcome=outcome, text=text):
            return f"The turn failed: {outcome}. {text}".rstrip()
        case events.TurnEnded(cost_usd=cost):
            return f"The turn ended (${cost:.4f})." if cost else "The turn ended."
        case events.RunEnded(reason=reason, clean=clean):
            return None if clean else f"The agent ended: {reason}"
        case events.LinkFound(lost=True):
            return "Something that it said is lost."
        case events.Noted(text=text):
            return text
        case events.BudgetReached(scope=scope, unit=unit, limit=limit):
            return f"The budget of the {scope} was reached: {limit:g} {unit}."
        case events.Alarmed(text=text, action=action):
            return f"{text} {action}".rstrip()
        case _:
            return None


def _readable(given: Raw) -> str:
    data = bytes(given)
    try:
        if _indented(data) <= MOST_BLANKS:
            return msgspec.json.format(data, indent=2).decode("utf-8", "replace")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return data.decode("utf-8", "replace")


def _indented(data: bytes) -> int:
    """How many blanks JSON would have at most in front of its lines, if it were made readable."""
    depth = deepest = lines = 0
    for bracket in _BRACKETS.finditer(data):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
        lines += 1
        if lines > MOST_BLANKS:
            break
    return (lines + data.count(b",")) * 2 * deepest
