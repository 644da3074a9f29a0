"""Stored events: an event with its numbers and its time, and the JSON in which clients get it.

Owns the envelope, and which events may hold secrets. `journal.event_codec` encodes and decodes
them.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import (
    AnyEvent,
    Said,
    Sent,
    SessionCreated,
    SpecChanged,
)

_encoder = msgspec.json.Encoder()


WITH_A_SPEC = tuple(
    f'{{"kind":"{kind.__struct_config__.tag}"'.encode() for kind in (SessionCreated, SpecChanged)
)
"""How events begin that are never forwarded undecoded: a spec may contain secrets."""


SENT = f'{{"kind":"{Sent.__struct_config__.tag}"'.encode()


SECRET_REQUESTS = (
    b'"mcp_set_servers"',
    b'"apply_flag_settings"',
    b'"update_environment_variables"',
)
"""Lines for the CLI that may contain secrets: they are not forwarded undecoded either."""


SAID = f'{{"kind":"{Said.__struct_config__.tag}"'.encode()
MIRROR = b'"transcript_mirror"'
"""The type of a line with a part of the CLI's transcript. It is at the beginning of the line."""
_NEAR = 256


def is_mirror(json: bytes) -> bool:
    """Whether an event is a part of the CLI's transcript, by its stored bytes."""
    return MIRROR in json[:_NEAR] and json.startswith(SAID)


def may_hold_secrets(json: bytes) -> bool:
    """Whether an event may contain what readers must not get, by its stored bytes."""
    return (
        json.startswith(WITH_A_SPEC)
        or (json.startswith(SENT) and any(each in json for each in SECRET_REQUESTS))
        or is_mirror(json)
    )


class Stored(Value, kw_only=False, gc=False):
    """An event with its numbers and its time.

    It is the most frequent object of the hub. `placed` makes it with positional arguments, and the
    garbage collector does not track it: it cannot be part of a cycle.
    """

    session: str
    seq: int
    """The number of the event in its session, from 1, without gaps."""
    position: int
    """The number of the event in the journal, in the order of storage."""
    at: int
    """Milliseconds since 1970."""
    event: AnyEvent
    json: bytes
    """The event as stored: one line of UTF-8 that can be sent unchanged."""


class RawEvents(Value):
    """Consecutive events of a session, as text that can be sent unchanged."""

    session: str
    last: int
    """The number of the last event."""
    text: str
    """A JSON array of events as `envelope` makes them, without events that may hold secrets."""


def envelope(session: str, seq: int, position: int, at: int, json: bytes) -> bytes:
    """A stored event as JSON."""
    return envelope_form(session) % (seq, position, at, json)


@lru_cache(maxsize=1024)
def envelope_form(session: str) -> bytes:
    name = _encoder.encode(session).replace(b"%", b"%%")
    return b'{"session":%b,"seq":%%d,"position":%%d,"at":%%d,"event":%%b}' % name


def stored_size(stored: Stored) -> int:
    """The size of a stored event in a page."""
    return len(stored.json)
