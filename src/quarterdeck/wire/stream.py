"""Stream events: the Messages API's own events, as `stream_event` carries them.

Only the deltas are worth speed here: hundreds come for each message, and most readers want no more
than their text.
"""

from __future__ import annotations

from quarterdeck.wire.base import Part


class TextDelta(Part, tag="text_delta"):
    """More of a text block."""

    text: str


class InputJsonDelta(Part, tag="input_json_delta"):
    """More of a tool call's input, as JSON text cut anywhere."""

    partial_json: str


Delta = TextDelta | InputJsonDelta
