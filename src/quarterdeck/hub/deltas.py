"""Text in the making: the CLI's stream events as our deltas. Pure; below `run`.

Owns which message a delta belongs to, for as long as that message is made. What becomes of the
deltas is `live`'s business.
"""

from __future__ import annotations

from quarterdeck.hub.deck import Deltas
from quarterdeck.wire.messages import StreamEvent
from quarterdeck.wire.stream import ContentBlockDelta, MessageStart, TextDelta, ThinkingDelta


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
