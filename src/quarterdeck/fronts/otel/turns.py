"""From a session's events to the spans of its turns. Pure, without any telemetry package.

A turn is a span `invoke_agent`; below it is a span `chat` for each request to the model and a span
`execute_tool` for each tool call, which contains those of a subagent. Times are the journal's.
Content is never in a span: no prompt, no answer, no input or output of a tool.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.otel.context import Ids, turn_ids
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    Event,
    PromptSent,
    RunEnded,
    Said,
    TurnEnded,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import ToolResultBlock, ToolUseBlock, Usage
from quarterdeck.wire.messages import Assistant, User

AGENT = "claude-code"
PROVIDER = "anthropic"
MOST_SPANS = 2000
"""The most spans of one turn; a turn with more has the number of those left out."""

LONGEST = 200
"""Characters of a name or an id: they come from the CLI and from authors of tools."""
LARGEST = 2**53

Attribute = str | int | float | bool | tuple[str, ...]


class Span(Value):
    """A finished span. Times are in ms since 1970."""

    ids: Ids
    parent: int | None
    name: str
    start: int
    end: int
    attributes: Mapping[str, Attribute]
    error: str | None = None
    remote: bool = False
    """It is a call to a remote service: the model."""
    linked: Ids | None = None
    """A span of another trace that it is linked to."""


class _Open(Struct):
    """An open span."""

    number: int
    parent: int
    name: str
    start: int
    end: int
    remote: bool = False
    attributes: dict[str, Attribute] = field(default_factory=dict)
    error: str | None = None


class _Lane(Struct):
    """The state of one agent: the main one, or a subagent."""

    since: int
    """When the model was called next."""
    message: str = ""
    request: _Open | None = None


class Turn:
    """A turn that is being folded."""

    def __init__(self, epoch: str, first: Stored) -> None:
        self.began = first.position
        self._epoch = epoch
        self._start = first.at
        self._run: str | None = None
        self._number = 0
        self._left_out = 0
        self._done: list[_Open] = []
        self._lanes: dict[str, _Lane] = {"": _Lane(first.at)}
        self._tools: dict[str, _Open] = {}
        self._asks: dict[str, tuple[str, int]] = {}

    def add(self, stored: Stored) -> None:
        """Add an event of the turn."""
        match stored.event:
            case PromptSent(run=run):
                self._run = run
            case Said(run=run, line=line):
                self._run = run
                self._add_line(bytes(line), stored.at)
            case AskOpened(ask=ask, tool_use_id=str(call)):
                self._asks[ask] = (call, stored.at)
            case AskAnswered(ask=ask, allowed=allowed):
                call, opened = self._asks.pop(ask, ("", 0))
                if (tool := self._tools.get(call)) is not None:
                    tool.attributes["quarterdeck.ask.wait_ms"] = stored.at - opened
                    tool.attributes["quarterdeck.ask.allowed"] = allowed
            case _:
                pass

    def end(self, stored: Stored, view: SessionView, linked: Ids | None) -> list[Span]:
        """All spans of the turn, which ends with this event: `TurnEnded`, or the run's end."""
        for lane in self._lanes.values():
            self._close_request(lane)
        for tool in self._tools.values():
            tool.end = stored.at
            tool.error = "unfinished"
            self._done.append(tool)
        attributes = self._about(view)
        error: str | None = None
        match stored.event:
            case TurnEnded() as ended:
                attributes["quarterdeck.turn.outcome"] = ended.outcome
                attributes["quarterdeck.turn.cost_usd"] = ended.cost_usd
                if ended.failed:
                    error = ended.outcome or "failed"
                attributes |= _totals(ended)
            case _:
                error = "run_ended"
        if error is not None:
            attributes["error.type"] = error
        if self._left_out:
            attributes["quarterdeck.spans.left_out"] = self._left_out
        root = Span(
            ids=turn_ids(self._epoch, self.began),
            parent=None,
            name=f"invoke_agent {AGENT}",
            start=self._start,
            end=max(self._start, stored.at),
            attributes=attributes,
            error=error,
            linked=linked,
        )
        return [root, *(self._span(each) for each in self._done)]

    @property
    def run(self) -> str | None:
        """The run of the turn, once it is known."""
        return self._run

    # --- what the CLI says -----------------------------------------------------------------------

    def _add_line(self, line: bytes, at: int) -> None:
        match from_cli(line):
            case Assistant() as message:
                self._assistant(message, at)
            case User() as message:
                lane = self._lane(message.parent_tool_use_id, at)
                for block in message.blocks:
                    if isinstance(block, ToolResultBlock):
                        self._close_tool(block, at)
                self._close_request(lane)
                lane.since = at
            case _:
                pass

    def _assistant(self, assistant: Assistant, at: int) -> None:
        lane = self._lane(assistant.parent_tool_use_id, at)
        message = assistant.message
        if message.id != lane.message or lane.request is None:
            self._close_request(lane)
            lane.message = message.id or ""
            lane.request = self._open(
                f"chat {message.model}" if message.model else "chat",
                self._root_of(assistant.parent_tool_use_id),
                lane.since,
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": PROVIDER,
                    "gen_ai.request.model": message.model or "",
                    "gen_ai.response.model": message.model or "",
                    "gen_ai.response.id": message.id or "",
                },
            )
        if lane.request is not None:
            lane.request.remote = True
            lane.request.end = max(lane.request.start, at)
            lane.request.attributes |= _usage(message.usage)
            if message.stop_reason is not None:
                reason = (str(message.stop_reason.value),)
                lane.request.attributes["gen_ai.response.finish_reasons"] = reason
            if assistant.error is not None:
                lane.request.error = str(assistant.error.value)
        for block in message.content:
            if isinstance(block, ToolUseBlock) and block.id not in self._tools:
                self._open_tool(block, assistant.parent_tool_use_id, at)
        lane.since = at

    def _open_tool(self, block: ToolUseBlock, caller: str | None, at: int) -> None:
        tool = self._open(
            f"execute_tool {block.name}",
            self._root_of(caller),
            at,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": block.name,
                "gen_ai.tool.call.id": block.id,
                "gen_ai.tool.type": "function",
            },
        )
        if tool is not None:
            self._tools[block.id] = tool

    def _close_tool(self, block: ToolResultBlock, at: int) -> None:
        tool = self._tools.pop(block.tool_use_id, None)
        if tool is None:
            return
        if (lane := self._lanes.pop(block.tool_use_id, None)) is not None:
            self._close_request(lane)
        tool.end = max(tool.start, at)
        tool.error = "tool_error" if block.is_error else None
        self._done.append(tool)

    def _close_request(self, lane: _Lane) -> None:
        if lane.request is not None:
            self._done.append(lane.request)
        lane.request = None

    def _lane(self, caller: str | None, at: int) -> _Lane:
        tool = self._tools.get(caller or "")
        if caller and tool is not None and caller not in self._lanes:
            self._lanes[caller] = _Lane(tool.start)
        return self._lanes.get(caller or "") or self._lanes.setdefault("", _Lane(at))

    def _root_of(self, caller: str | None) -> int:
        tool = self._tools.get(caller or "")
        return 0 if tool is None else tool.number

    # --- spans -----------------------------------------------------------------------------------

    def _open(
        self, name: str, parent: int, start: int, attributes: dict[str, Attribute]
    ) -> _Open | None:
        if self._number >= MOST_SPANS:
            self._left_out += 1
            return None
        self._number += 1
        return _Open(self._number, parent, name, start, start, attributes=attributes)

    def _span(self, done: _Open) -> Span:
        ids = turn_ids(self._epoch, self.began, done.number)
        attributes = {name: _cut(value) for name, value in done.attributes.items() if value != ""}
        if done.error is not None:
            attributes["error.type"] = done.error
        return Span(
            ids=ids,
            parent=turn_ids(self._epoch, self.began, done.parent).span,
            name=done.name[:LONGEST],
            start=done.start,
            end=done.end,
            attributes=attributes,
            error=done.error,
            remote=done.remote,
        )

    def _about(self, view: SessionView) -> dict[str, Attribute]:
        about: dict[str, Attribute] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": AGENT,
            "quarterdeck.session.id": view.session,
        }
        more = {
            "gen_ai.conversation.id": view.cli_session,
            "gen_ai.agent.version": view.version,
            "quarterdeck.project": view.spec.project,
            "quarterdeck.machine": view.machine,
            "quarterdeck.run.id": self._run,
        }
        return about | {name: value for name, value in more.items() if value}


def run_span(began: int, ended: Stored, event: RunEnded, view: SessionView, ids: Ids) -> Span:
    """The span of a whole run, the parent of its CLI's own spans."""
    attributes: dict[str, Attribute] = {
        "quarterdeck.session.id": view.session,
        "quarterdeck.run.id": event.run,
    }
    if event.exit_code is not None:
        attributes["process.exit.code"] = event.exit_code
    return Span(
        ids=ids,
        parent=None,
        name=f"run {AGENT}",
        start=began,
        end=max(began, ended.at),
        attributes=attributes,
        error=None if event.clean else "died",
    )


def begins_turn(event: Event) -> bool:
    """Whether a new turn begins with this event."""
    if isinstance(event, PromptSent):
        return True
    return isinstance(event, Said) and (b'"assistant"' in bytes(event.line)[:200])


def _usage(usage: Usage | None) -> dict[str, Attribute]:
    if usage is None:
        return {}
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    # By the convention, tokens from a cache count as input too.
    found: dict[str, Attribute] = {
        "gen_ai.usage.input_tokens": _count((usage.input_tokens or 0) + cached + written),
        "gen_ai.usage.output_tokens": _count(usage.output_tokens or 0),
    }
    if cached:
        found["gen_ai.usage.cache_read.input_tokens"] = _count(cached)
    if written:
        found["gen_ai.usage.cache_creation.input_tokens"] = _count(written)
    return found


def _count(number: float) -> int:
    """A valid number of tokens: an invalid one would spoil its whole batch."""
    return 0 if math.isnan(number) else int(min(max(number, 0), LARGEST))


def _cut(value: Attribute) -> Attribute:
    return value[:LONGEST] if isinstance(value, str) else value


def _totals(ended: TurnEnded) -> dict[str, Attribute]:
    if not ended.models:
        return {}
    read = sum(used.input + used.cache_read + used.cache_write for used in ended.models)
    return {
        "gen_ai.usage.input_tokens": read,
        "gen_ai.usage.output_tokens": sum(used.output for used in ended.models),
    }
