"""Stored events, and their encoding.

Owns the guarantee that an accepted event can be read again: `encode` refuses an event that would
not be valid JSON, before anything is written. Tokens of the hub are masked. Above it are the
engines; of ours it knows `protocol` and what is large.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TypeVar, cast, get_args

import msgspec
from msgspec import Raw, inspect

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.domain.secrets import mask_tokens_in
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import (
    AnyEvent,
    Event,
    PromptChanged,
    PromptQueued,
    Recalled,
    Said,
    SaidBroken,
    Sent,
)
from quarterdeck.protocol.stored_events import (
    WITH_A_SPEC,
    RawEvents,
    Stored,
    envelope_form,
    may_hold_secrets,
)
from quarterdeck.runtime.off_loop import LARGE

PAGE_BYTES = 4 * 1024 * 1024
"""The approximate size limit of a page: one line of a CLI may have 10 MB, a page 1,000 lines."""

MOST_EVENTS = 5000
"""The most events of a page, whatever `limit` is."""

RAW_SIZE = 256 * 1024
"""The size limit of `RawEvents`, unless its only event is larger."""

_LARGEST = 2**63 - 1
_LONGEST_NAME = 128

_FAULTS = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""What a codec raises for an event with a wrong type or with invalid raw JSON."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_skim = msgspec.json.Decoder(Raw)


def _plain_kinds() -> frozenset[type]:
    """The events without raw JSON and without floats, at any depth."""

    def plain(info: object, above: tuple[type, ...] = ()) -> bool:
        match info:
            case inspect.RawType() | inspect.FloatType() | inspect.AnyType():
                return False
            case inspect.StructType(cls=kind):
                return kind in above or all(
                    plain(field.type, (*above, kind)) for field in info.fields
                )
            case inspect.UnionType(types=kinds):
                return all(plain(each, above) for each in kinds)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                return plain(item, above)
            case inspect.TupleType(item_types=kinds):
                return all(plain(each, above) for each in kinds)
            case inspect.DictType(key_type=key, value_type=value):
                return plain(key, above) and plain(value, above)
            case _:
                return True

    return frozenset(kind for kind in get_args(AnyEvent) if plain(inspect.type_info(kind)))


_PLAIN = _plain_kinds()
"""Events that need no check. Raw JSON may be malformed, and a float may be NaN, which JSON does not
have: events with either are decoded again, and refused if that fails."""


class Encoded(Value):
    """Events that can be stored, and their lines."""

    events: list[AnyEvent]
    lines: list[bytes]

    @property
    def size(self) -> int:
        """The size of the lines in bytes."""
        return sum(map(len, self.lines))


def size_of(events: Sequence[Event]) -> int:
    """About how many bytes the events have, without encoding them: those of their texts."""
    return sum(map(_size, events))


def _size(event: Event) -> int:
    """Of a line, of what a prompt says, or of a line that is not JSON."""
    match event:
        case Said(line=raw) | Sent(line=raw) | Recalled(line=raw):
            return len(memoryview(raw))
        case PromptQueued(content=raw) | PromptChanged(content=raw):
            return len(memoryview(raw))
        case SaidBroken(text=text):
            return len(text)
        case _:
            return 0


def encode(events: Sequence[Event]) -> Encoded:
    """Events as bytes. Raises `UsageError` for one that could not be read again."""
    if len(events) == 1:
        event, line = _encode_one(events[0])
        return Encoded(events=[event], lines=[line])
    if events and size_of(events) < LARGE:  # large ones take less long one by one
        # If this fails, encoding them one by one finds the event at fault.
        with contextlib.suppress(*_FAULTS):
            if (encoded := _encode_all(events)) is not None:
                return encoded
    pairs = [_encode_one(event) for event in events]
    return Encoded(events=[event for event, _ in pairs], lines=[line for _, line in pairs])


def _encode_all(events: Sequence[Event]) -> Encoded | None:
    """Encode all at once, in a third of the time; None if they must be encoded one by one."""
    data = _encoder.encode_lines(events)
    lines = data.split(b"\n")
    lines.pop()  # after the last newline
    if len(lines) != len(events) or b"\r" in data:
        return None
    if not data.isascii():
        data.decode()
    if mask_tokens_in(data) is not data:
        lines = list(map(_mask_line, lines))
        return Encoded(events=list(map(_decoder.decode, lines)), lines=lines)
    if _PLAIN.issuperset(map(type, events)):
        return Encoded(events=list(cast("Sequence[AnyEvent]", events)), lines=lines)
    # Every line closes its own brace, so broken raw JSON cannot extend into the next line.
    return Encoded(events=_decoder.decode_lines(data), lines=lines)


def _mask_line(line: bytes) -> bytes:
    """The line with tokens of the hub masked: every reader may see it.

    A spec is not masked: a session is started from it. Readers get it masked.
    """
    return line if line.startswith(WITH_A_SPEC) else mask_tokens_in(line)


def _encode_one(event: Event) -> tuple[AnyEvent, bytes]:
    try:
        data = _encoder.encode(event)
        if b"\n" in data or b"\r" in data:
            # Only raw JSON can have them, between its tokens; in strings they are escaped.
            data = msgspec.json.format(data, indent=-1)
            return _decoder.decode(masked := _mask_line(data)), masked
        masked = _mask_line(data)
        if not masked.isascii():
            masked.decode()  # raw JSON is copied without a check of its encoding
        if masked is data and type(event) in _PLAIN:
            return cast("AnyEvent", event), data
        return _decoder.decode(masked), masked
    except _FAULTS as error:
        raise UsageError(f"{type(event).__name__} cannot be stored: {error}") from error


def place_events(encoded: Encoded, session: str, head: int, position: int, at: int) -> list[Stored]:
    """Stored events that follow this number of their session and this position."""
    count = len(encoded.lines)
    return list(
        map(
            Stored,
            repeat(session),
            range(head + 1, head + count + 1),
            range(position + 1, position + count + 1),
            repeat(at),
            encoded.events,
            encoded.lines,
        )
    )


def decode(data: bytes, path: object, session: str, seq: int) -> AnyEvent:
    """Decode an event. Raises `JournalError` with the event's number."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        where = f"event {seq} of session {session} in {path}"
        if _is_of_unknown_kind(data):
            raise JournalError(
                f"{where} is of a kind that this version does not know: a newer Quarterdeck wrote"
                " it; upgrade this one, or open a backup from before the upgrade",
                code="newer",
            ) from error
        raise JournalError(f"{where} is damaged: {error}", code="damaged") from error


class _Kind(msgspec.Struct):
    kind: str


_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(AnyEvent))


def _is_of_unknown_kind(data: bytes) -> bool:
    try:
        return msgspec.json.decode(data, type=_Kind).kind not in _KINDS
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def raw_events(session: str, rows: Iterable[tuple[int, int, int, bytes]]) -> RawEvents | None:
    """The first of these events of a session: number, position, time, and bytes of each.

    None without events, if the first may hold secrets, or if one is invalid; decoding them one by
    one then tells which.
    """
    parts: list[bytes] = []
    size = last = 0
    form = envelope_form(session)
    for row in rows:
        json = row[3]
        size += len(json)
        if may_hold_secrets(json) or (parts and size > RAW_SIZE):
            break
        parts.append(form % row)
        last = row[0]
    text = b"[%b]" % b",".join(parts)
    return (
        RawEvents(session=session, last=last, text=text.decode()) if parts and sound(text) else None
    )


def sound(text: str | bytes) -> bool:
    """Whether a text from the file is valid JSON and UTF-8."""
    try:
        _skim.decode(text)
        return isinstance(text, str) or text.isascii() or bool(text.decode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def check_session(session: str) -> None:
    """Refuse an invalid id. Raises `UsageError`."""
    if not 0 < len(session) <= _LONGEST_NAME or not session.isascii() or not session.isprintable():
        raise UsageError(f"session: 1 to {_LONGEST_NAME} printable ASCII characters are wanted")


def check_page(after: int, limit: int, before: int | None = None) -> int:
    """The limit to use. Raises `UsageError` for invalid numbers."""
    if not 0 <= after <= _LARGEST:
        raise UsageError("after: must be 0 or more")
    if before is not None and not 0 <= before <= _LARGEST:
        raise UsageError("before: must be 0 or more")
    if limit < 1:
        raise UsageError("limit: must be 1 or more")
    return min(limit, MOST_EVENTS)


_Item = TypeVar("_Item")


def page(items: Iterable[_Item], limit: int, size: Callable[[_Item], int]) -> list[_Item]:
    """The first items: at most `limit`, about `PAGE_BYTES`, at least one."""
    found: list[_Item] = []
    total = 0
    for item in items:
        found.append(item)
        total += size(item)
        if len(found) >= limit or total >= PAGE_BYTES:
            break
    return found
