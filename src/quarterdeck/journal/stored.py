"""An event as the journal keeps it, and the way from an event to bytes and back.

Owns the promise that what was accepted can be read again: `encode` refuses what would be no JSON,
before anything is written. Tokens of the hub are masked: no event is kept with one. Engines stand
above it; below it are the words of `domain`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
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
    SessionCreated,
    SpecChanged,
)

PAGE_BYTES = 4 * 1024 * 1024
"""No page is made much larger than this: one line of a CLI may have 10 MB, and a page 1,000."""

MOST_EVENTS = 5000
"""No page has more events than this, whatever is asked for."""

PASSAGE_SIZE = 256 * 1024
"""A passage is not made larger than this, unless its only event is."""

_LARGEST = 2**63 - 1
_LONGEST_NAME = 128

_FAULTS = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""What a codec raises for an event that is not as its type says, or whose raw JSON is none."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_skim = msgspec.json.Decoder(Raw)


def _plain_kinds() -> frozenset[type]:
    """The events without raw JSON and without a float, in all that is in them."""

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
"""They are stored as they are. Only raw JSON can be broken, and only a float can be none that JSON
has: events with either are decoded again, and refused if that fails."""

WITH_A_SPEC = tuple(
    f'{{"kind":"{kind.__struct_config__.tag}"'.encode() for kind in (SessionCreated, SpecChanged)
)
"""How the events begin that are in no passage: a spec has secrets in it."""


class Stored(Value, kw_only=False, gc=False):
    """An event in its place.

    There are more of these than of anything else: they are made without names in one place, which
    is `placed`, and nothing in them can lead back to them, so that nobody has to look for that.
    """

    session: str
    seq: int
    """Counts the events of its session, from 1, without a gap."""
    position: int
    """Counts the events of the journal, in the order in which they were stored."""
    at: int
    """Milliseconds since the epoch of Unix."""
    event: AnyEvent
    json: bytes
    """The event as it is stored: one line of UTF-8, which can be passed on as it is."""


class RawEvents(Value):
    """Events of a session that follow each other, as text that can be passed on as it is."""

    session: str
    last: int
    """The number of the last of them."""
    text: str
    """An array, in which each is as `envelope` makes it. None of them has a spec."""


class Encoded(Value):
    """Events that are fit to be stored, and each as a line."""

    events: list[AnyEvent]
    lines: list[bytes]

    @property
    def size(self) -> int:
        """How many bytes they have."""
        return sum(map(len, self.lines))


def encode(events: Sequence[Event]) -> Encoded:
    """Events as bytes. Raises `UsageError` for one that could not be read again."""
    if len(events) == 1:
        event, line = _encode_one(events[0])
        return Encoded(events=[event], lines=[line])
    if events:
        # When one is refused, the way below finds out which.
        with contextlib.suppress(*_FAULTS):
            if (encoded := _encode_all(events)) is not None:
                return encoded
    pairs = [_encode_one(event) for event in events]
    return Encoded(events=[event for event, _ in pairs], lines=[line for _, line in pairs])


def _encode_all(events: Sequence[Event]) -> Encoded | None:
    """All at once, in a third of the time; None when they have to be looked at one by one."""
    data = _encoder.encode_lines(events)
    lines = data.split(b"\n")
    lines.pop()  # behind the last line there is nothing
    if len(lines) != len(events) or b"\r" in data:
        return None
    if not data.isascii():
        data.decode()
    if mask_tokens_in(data) is not data:
        lines = list(map(_masked, lines))
        return Encoded(events=list(map(_decoder.decode, lines)), lines=lines)
    if _PLAIN.issuperset(map(type, events)):
        return Encoded(events=list(cast("Sequence[AnyEvent]", events)), lines=lines)
    # Each line ends in the brace that began it: broken raw JSON cannot reach into the next one.
    return Encoded(events=_decoder.decode_lines(data), lines=lines)


def _masked(line: bytes) -> bytes:
    """An event without tokens of the hub: every reader may see it, for as long as it is kept.

    A spec is left as it is: a session is started by it, and readers get it masked.
    """
    return line if line.startswith(WITH_A_SPEC) else mask_tokens_in(line)


def _encode_one(event: Event) -> tuple[AnyEvent, bytes]:
    try:
        data = _encoder.encode(event)
        if b"\n" in data or b"\r" in data:
            # Only between the tokens of somebody's raw JSON: in a string they would be escaped.
            data = msgspec.json.format(data, indent=-1)
            return _decoder.decode(masked := _masked(data)), masked
        masked = _masked(data)
        if not masked.isascii():
            masked.decode()  # raw JSON is passed through, and nobody has looked at its letters
        if masked is data and type(event) in _PLAIN:
            return cast("AnyEvent", event), data
        return _decoder.decode(masked), masked
    except _FAULTS as error:
        raise UsageError(f"{type(event).__name__} cannot be stored: {error}") from error


def placed(encoded: Encoded, session: str, head: int, position: int, at: int) -> list[Stored]:
    """Events in their places: behind this number of their session, and this position of all."""
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
    """The event in these bytes. Raises `JournalError` that says where it cannot be read."""
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


def envelope(session: str, seq: int, position: int, at: int, json: bytes) -> bytes:
    """An event in its place, as JSON."""
    return _envelope(session) % (seq, position, at, json)


@lru_cache(maxsize=1024)
def _envelope(session: str) -> bytes:
    name = _encoder.encode(session).replace(b"%", b"%%")
    return b'{"session":%b,"seq":%%d,"position":%%d,"at":%%d,"event":%%b}' % name


def passage(session: str, rows: Iterable[tuple[int, int, int, bytes]]) -> RawEvents | None:
    """The first of a session's events: number, position, time, and bytes of each.

    None when there are none, when the first has a spec, or one cannot be read: whoever decodes them
    one by one finds out.
    """
    parts: list[bytes] = []
    size = last = 0
    form = _envelope(session)
    for row in rows:
        json = row[3]
        size += len(json)
        if json.startswith(WITH_A_SPEC) or (parts and size > PASSAGE_SIZE):
            break
        parts.append(form % row)
        last = row[0]
    text = b"[%b]" % b",".join(parts)
    return (
        RawEvents(session=session, last=last, text=text.decode()) if parts and sound(text) else None
    )


def sound(text: str | bytes) -> bool:
    """Whether a text is JSON, and UTF-8. Nobody has looked at what a file gives back."""
    try:
        _skim.decode(text)
        return isinstance(text, str) or text.isascii() or bool(text.decode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def check_session(session: str) -> None:
    """Refuse what is no id. Raises `UsageError`."""
    if not 0 < len(session) <= _LONGEST_NAME or not session.isascii() or not session.isprintable():
        raise UsageError(f"session: 1 to {_LONGEST_NAME} printable ASCII characters are wanted")


def check_page(after: int, limit: int) -> int:
    """The limit to use. Raises `UsageError` for numbers that cannot be right."""
    if not 0 <= after <= _LARGEST:
        raise UsageError("after: a number from 0 is wanted")
    if limit < 1:
        raise UsageError("limit: a number from 1 is wanted")
    return min(limit, MOST_EVENTS)


_Item = TypeVar("_Item")


def page(items: Iterable[_Item], limit: int, size: Callable[[_Item], int]) -> list[_Item]:
    """The first of them: at most `limit`, not much more than `PAGE_BYTES`, at least one."""
    found: list[_Item] = []
    total = 0
    for item in items:
        found.append(item)
        total += size(item)
        if len(found) >= limit or total >= PAGE_BYTES:
            break
    return found


def stored_size(stored: Stored) -> int:
    """How much of a page it fills."""
    return len(stored.json)
