"""The text of a stream event, without decoding anything else.

Only deltas need speed: a message has hundreds, and most readers only want their text. `stream` has
the events themselves.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.structs import DECODE_ERRORS


class _AnyDelta(Struct, gc=False):
    kind: str = field(name="type", default="")
    text: str = ""


class _AnyEvent(Struct, gc=False):
    delta: _AnyDelta | None = None


_any_event = msgspec.json.Decoder(_AnyEvent).decode


def delta_text(event: Raw) -> str:
    """The text that an event adds; empty for all events but text deltas. Never raises."""
    try:
        delta = _any_event(event).delta
    except DECODE_ERRORS:
        return ""
    return delta.text if delta and delta.kind == "text_delta" else ""
