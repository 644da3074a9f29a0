"""Which calls a CLI was let make: from the events of its session. Pure.

An agent can read the token of its own run, and could call the hub by itself: while a person still
thinks about a call, or with other arguments than those that were allowed. So a call is served only
if the journal has it with the same arguments, and has who allowed it. `server` serves each once.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.modes import BYPASS
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import ToolUseBlock
from quarterdeck.wire.messages import Assistant

ALLOW = "allow"


class _Answer(msgspec.Struct):
    """What an answer changes about a call."""

    input: Raw = ABSENT


class SeenCall:
    """One call, as far as the journal tells of it."""

    def __init__(self) -> None:
        self.input: Raw = ABSENT
        self.edited: Raw = ABSENT
        self.asked: set[str] = set()
        """The questions about it that are not answered."""
        self.allowed: bool | None = None
        """What was decided last, by a rule or a person."""
        self.left_to_cli = False
        self.rewritten = False

    def take(self, event: ev.Event, call: str) -> None:
        """Take the next event of the session."""
        match event:
            case ev.Said(line=line) if call.encode() in bytes(line):
                self._read_line(bytes(line), call)
            case ev.AskOpened(ask=ask, tool_use_id=id_) if id_ == call:
                self.asked.add(ask)
            case ev.AskAnswered(ask=ask, allowed=allowed) if ask in self.asked:
                self.asked.discard(ask)
                self.allowed = allowed
                self.edited = _edited_arguments(event)
            case ev.AskWithdrawn(ask=ask) if ask in self.asked:
                self.asked.discard(ask)
                self.allowed = False
            case ev.Decided(tool_use_id=id_, by="policy", verdict=verdict) if id_ == call:
                if verdict != "ask":
                    self.allowed = verdict == ALLOW and self.allowed is not False
                self.rewritten = self.rewritten or event.rewritten
            case ev.LeftToCli(tool_use_id=id_) if id_ == call:
                self.left_to_cli = True
                self.rewritten = self.rewritten or event.rewritten

    def _read_line(self, line: bytes, call: str) -> None:
        message = from_cli(line)
        if isinstance(message, Assistant):
            for block in message.blocks:
                if isinstance(block, ToolUseBlock) and block.id == call:
                    self.input = block.input

    @property
    def announced(self) -> bool:
        """Whether the CLI has told of it."""
        return bool(self.input)

    def may_run(self, *, cli_allows: bool) -> bool:
        """Whether it was allowed, and no question about it is open."""
        if self.asked or self.allowed is False:
            return False
        return self.allowed is True or (self.left_to_cli and cli_allows)

    def runs_with(self, given: bytes) -> bool:
        """Whether these are the arguments that were allowed."""
        if self.rewritten:
            return False  # no event has the arguments that a rule made of them
        allowed = self.edited or self.input
        return bool(allowed) and _value(bytes(allowed)) == _value(given)


def cli_allows(spec: SessionSpec, mode: str | None, tool: str) -> bool:
    """Whether the CLI lets a tool of an MCP server pass without a question, as its flags tell.

    Settings of the user or the project may allow it too. They are not known here, and an agent may
    have written them: they do not count.
    """
    server, _, _ = tool.removeprefix("mcp__").partition("__")
    names = {tool, f"mcp__{server}", f"mcp__{server}__*"}
    return mode == BYPASS or not names.isdisjoint(spec.allowed_tools)


def look(events: Iterable[ev.Event], call: str) -> SeenCall:
    """What the events of a session tell about a call."""
    seen = SeenCall()
    for event in events:
        seen.take(event, call)
    return seen


def _edited_arguments(answered: ev.AskAnswered) -> Raw:
    """The arguments that a person has put in place of the agent's."""
    if answered.input:
        return answered.input
    try:
        return msgspec.json.decode(answered.answer, type=_Answer).input
    except DECODE_ERRORS:
        return ABSENT


def _value(json: bytes) -> object:
    try:
        return msgspec.json.decode(json or b"{}")
    except DECODE_ERRORS:
        return None
