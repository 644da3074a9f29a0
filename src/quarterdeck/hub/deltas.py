"""Text in the making: the CLI's stream events as our deltas. Pure; below `run`.

Owns which message a delta belongs to, for as long as that message is made. What becomes of the
deltas is `live`'s business.
"""

from __future__ import annotations

import msgspec

from quarterdeck.protocol.views import Deltas
from quarterdeck.wire.messages import StreamEvent
from quarterdeck.wire.stream import ContentBlockDelta, MessageStart, TextDelta, ThinkingDelta


class _Text(msgspec.Struct, tag="text_delta"):
    text: str


class _Thinking(msgspec.Struct, tag="thinking_delta"):
    thinking: str


class _Input(msgspec.Struct, tag="input_json_delta"):
    pass


class _Piece(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: _Text | _Thinking | _Input


class _Line(msgspec.Struct, tag="stream_event"):
    event: _Piece
    parent_tool_use_id: None


_lines: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)
_BEGINNING = b'{"type":"stream_event"'


class DeltaReader:
    """The stream of one run."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._message = ""

    def read(self, message: StreamEvent) -> tuple[Deltas, ...]:
        """The text that came with a stream event, if any did."""
        match message.event:
            case MessageStart(message=started):
                self._message = started.id or ""
            case ContentBlockDelta(index=index, delta=TextDelta(text=text)):
                return (self._delta(message, index, text),)
            case ContentBlockDelta(index=index, delta=ThinkingDelta(thinking=text)):
                return (self._delta(message, index, text, thinking=True),)
            case _:
                pass
        return ()

    def read_piece(self, line: bytes) -> tuple[Deltas, ...] | None:
        """The text of a line that is a piece of the main conversation; None if it is no such line.

        Most lines of a CLI are this, and nothing else can be in them: one look is enough.
        """
        if not line.startswith(_BEGINNING):
            return None
        try:
            event = _lines.decode(line).event
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        match event.delta:
            case _Text(text=text):
                return (self._piece(event.index, text),)
            case _Thinking(thinking=text):
                return (self._piece(event.index, text, thinking=True),)
            case _:
                return ()

    def _piece(self, block: int, text: str, *, thinking: bool = False) -> Deltas:
        return Deltas(
            session=self._session, message=self._message, text=text, block=block, thinking=thinking
        )

    def _delta(
        self, message: StreamEvent, block: int, text: str, *, thinking: bool = False
    ) -> Deltas:
        return Deltas(
            session=self._session,
            message=message.parent_tool_use_id or self._message,
            text=text,
            block=block,
            thinking=thinking,
        )
