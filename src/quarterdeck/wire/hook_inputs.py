"""The input of a hook, typed by its event.

`hooks` declares the inputs. A hook must be answered, so every input gives a value.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.hooks import HookEvent, HookInput, UnknownHook


class _Event(Struct):
    hook_event_name: str = ""


_decode_event = msgspec.json.Decoder(_Event).decode
_decoder: msgspec.json.Decoder[HookInput] = msgspec.json.Decoder(HookInput)


def decode_hook_input(json: Raw) -> HookInput | UnknownHook:
    """Type the input of a hook by its event. Never raises."""
    try:
        return _decoder.decode(json)
    except DECODE_ERRORS as error:
        try:
            event = _decode_event(json).hook_event_name
        except DECODE_ERRORS:
            event = ""
        known = HookEvent(event).known
        return UnknownHook(event=event, json=json, error=str(error) if known else None)
