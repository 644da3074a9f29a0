"""Stream events: the Messages API's own events, in `stream_event` messages.

Owns one event; the reader keeps track of blocks and messages. `deltas` reads the text of a delta
without decoding anything else.

Written by tools/write_wire.py from tools/wire/stream.toml; do not edit.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, OpenUnion, Part, UnknownPart
from quarterdeck.wire.content import (
    AssistantBody,
    Block,
    StopReason,
    Usage,
    blocks,
    decode_assistant_body,
    decode_usage,
)
from quarterdeck.wire.envelope import Body, Lazy


class TextDelta(Part, tag="text_delta"):
    """More of a text block."""

    text: str


class InputJsonDelta(Part, tag="input_json_delta"):
    """More of a tool call's input, as JSON text cut anywhere."""

    partial_json: str


class ThinkingDelta(Part, tag="thinking_delta"):
    """More of a thinking block."""

    thinking: str
    estimated_tokens: Number | None = None


class SignatureDelta(Part, tag="signature_delta"):
    """The signature of the thinking block that is now complete."""

    signature: str


class CitationsDelta(Part, tag="citations_delta"):
    """A source for the text just sent."""

    citation: Raw = ABSENT


class CompactionDelta(Part, tag="compaction_delta"):
    """The API's complete summary of the earlier conversation."""

    content: str | None = None
    encrypted_content: str | None = None


Delta = (
    TextDelta | InputJsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | CompactionDelta
)

deltas: OpenUnion[Delta] = OpenUnion(Delta)


class MessageStart(Part, tag="message_start"):
    """A response begins. Its message has no content yet."""

    message_json: Raw = field(name="message", default=ABSENT)

    @cached_property
    def message(self) -> AssistantBody:
        """The message, still empty."""
        return decode_assistant_body(self.message_json)


class ContentBlockStart(Part, tag="content_block_start"):
    """A block begins. A tool call's name is known from here on, its input is not."""

    index: int = 0
    content_block_json: Raw = field(name="content_block", default=ABSENT)

    @cached_property
    def content_block(self) -> Block | UnknownPart:
        """The block, still empty."""
        return blocks.decode(self.content_block_json)


class ContentBlockDelta(Part, tag="content_block_delta"):
    """More of a block."""

    index: int = 0
    delta_json: Raw = field(name="delta", default=ABSENT)

    @cached_property
    def delta(self) -> Delta | UnknownPart:
        """The text or data to append."""
        return deltas.decode(self.delta_json)


class ContentBlockStop(Part, tag="content_block_stop"):
    """A block is complete. The CLI has by then already sent it as an `Assistant` message."""

    index: int = 0


class MessageChange(Body):
    """Properties of a message that are known only at its end."""

    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    container: Raw = ABSENT
    stop_details: Raw = ABSENT


class MessageDelta(Part, tag="message_delta"):
    """A response is about to end, with its stop reason and usage."""

    delta_json: Raw = field(name="delta", default=ABSENT)
    usage_json: Raw = field(name="usage", default=ABSENT)
    context_management: Raw = ABSENT

    @cached_property
    def delta(self) -> MessageChange:
        """Why the model stopped."""
        return _decode_change(self.delta_json)

    @cached_property
    def usage(self) -> Usage:
        """Totals of the response so far."""
        return decode_usage(self.usage_json)


class MessageStop(Part, tag="message_stop"):
    """A response has ended."""


class Ping(Part, tag="ping"):
    """Says nothing; keeps the connection to the API open."""


class StreamFailure(Part, tag="error"):
    """The API broke off the response."""

    error: Raw = ABSENT


Event = (
    ContentBlockDelta
    | ContentBlockStart
    | ContentBlockStop
    | MessageStart
    | MessageDelta
    | MessageStop
    | Ping
    | StreamFailure
)

events: OpenUnion[Event] = OpenUnion(Event)

_decode_change: Lazy[MessageChange] = Lazy(MessageChange, MessageChange)
