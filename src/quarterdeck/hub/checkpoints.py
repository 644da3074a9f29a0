"""The prompts of a session as points to go back to: what was said before each, and in which run.

Owns how they are read from the journal. `rewinds`, forks and the HTTP front are above. Prompts that
the hub did not send, such as imported ones, are no checkpoints: the CLI knows them by ids that the
hub does not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import NotFound
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.views import Checkpoint
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Assistant

PAGE = 1000
LONGEST_TEXT = 300
"""Characters of a prompt that a checkpoint tells."""
_HEAD = 400
"""Where the type of a line is."""

ReadEvents = Callable[[int, int], Awaitable[list[Stored]]]
"""A page of a session's events: after this number, at most so many."""


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Fold:
    """The checkpoints so far."""

    def __init__(self) -> None:
        self.found: dict[str, Checkpoint] = {}
        self._texts: dict[str, tuple[Raw, str]] = {}
        self._last: str | None = None
        self._conversation: str | None = None

    def add(self, stored: Stored) -> None:
        match stored.event:
            case ev.PromptQueued(prompt=id_, content=content, by=by):
                self._texts[id_] = (content, by)
            case ev.PromptChanged(prompt=id_, content=content) if id_ in self._texts:
                self._texts[id_] = (content, self._texts[id_][1])
            case ev.PromptSent(prompt=id_, uuid=uuid, steered=steered) if id_ in self._texts:
                content, by = self._texts.pop(id_)
                self.found[id_] = Checkpoint(
                    prompt=id_,
                    uuid=uuid or id_,
                    at=stored.at,
                    seq=stored.seq,
                    by=by,
                    text=prompt_text(content),
                    before=self._last,
                    conversation=self._conversation,
                    steered=steered,
                )
            case ev.CliSession(cli_session=id_) if id_ != self._conversation:
                # The first prompts are sent before the CLI tells its conversation.
                if self._conversation is None:
                    self.found = {
                        key: msgspec.structs.replace(one, conversation=id_)
                        for key, one in self.found.items()
                    }
                else:
                    self._last = None
                self._conversation = id_
            case ev.Said(line=line) | ev.Recalled(line=line) if b'"assistant"' in line_head(line):
                message = from_cli(bytes(line))
                if isinstance(message, Assistant) and message.parent_tool_use_id is None:
                    self._last = message.uuid or self._last
            case ev.SessionRewound(prompt=id_, conversation=True) if id_ in self.found:
                point = self.found[id_]
                self._last = point.before
                self.found = {
                    key: msgspec.structs.replace(one, gone=one.gone or one.seq >= point.seq)
                    for key, one in self.found.items()
                }


def line_head(line: Raw) -> bytes:
    """The beginning of a line, without a copy of all of it."""
    return bytes(memoryview(line)[:_HEAD])


async def read_checkpoints(read: ReadEvents) -> tuple[Checkpoint, ...]:
    """The checkpoints of a session, oldest first."""
    fold, after = _Fold(), 0
    while page := await read(after, PAGE):
        for stored in page:
            fold.add(stored)
        after = page[-1].seq
    return tuple(fold.found.values())


async def find_checkpoint(read: ReadEvents, prompt: str) -> Checkpoint:
    """One of them. Raises `NotFound`."""
    for point in await read_checkpoints(read):
        if point.prompt == prompt:
            return point
    raise NotFound("prompt", prompt)


def prompt_text(content: Raw) -> str:
    """The beginning of a prompt's text."""
    try:
        words = msgspec.json.decode(content, type=str | list[_Block])
    except msgspec.DecodeError:
        return ""
    if isinstance(words, list):
        words = "\n".join(block.text for block in words if block.type == "text")
    return words[:LONGEST_TEXT]
