"""Undecoded JSON.

Owns encoding a value for a message, and the checks that keep a message one line of valid JSON.
Every version of the CLI exits on a broken line, and a tool's input or an answer may come from
anywhere, so everything is checked before it becomes `Raw`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS
from quarterdeck.wire.base import UnknownPart

T = TypeVar("T")

EMPTY = Raw(b"{}")
"""An object without members."""

_blanks = b" \t\r\n"

_HIGH = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""Where no backslash is escaped."""
PART = 256 * 1024
"""Of a text that is searched for surrogates without a pause, by callers in a thread."""


class _Subtype(Struct):
    subtype: str = ""


MOST_BLOCKS = 1000
"""Blocks of one prompt. The Messages API takes a hundred images."""


class _Typed(Struct):
    type: Raw


_subtype = msgspec.json.Decoder(_Subtype).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_elements = msgspec.json.Decoder(list[Raw]).decode
_typed = msgspec.json.Decoder(_Typed).decode
_plain = msgspec.json.Decoder(dict[str, object]).decode
# A list of members by their place: the decoder stops at the first one too many.
_Few = msgspec.defstruct(
    "_Few",
    [(f"at_{number}", Raw, ABSENT) for number in range(MOST_BLOCKS)],
    array_like=True,
    forbid_unknown_fields=True,
)
_few = msgspec.json.Decoder(_Few).decode
_FewTyped = msgspec.defstruct(
    "_FewTyped",
    [("first", _Typed)]
    + [(f"at_{number}", _Typed | UnsetType, UNSET) for number in range(1, MOST_BLOCKS)],
    array_like=True,
    forbid_unknown_fields=True,
)
_few_typed = msgspec.json.Decoder(_FewTyped).decode
_any = msgspec.json.Decoder().decode
_sorted = msgspec.json.Encoder(order="sorted").encode


def always(value: T) -> T:
    """A default that is encoded too: fields with plain defaults are omitted."""
    default: T = field(default_factory=lambda: value)
    return default


def dump(value: object) -> Raw:
    """Encode a value as one line of JSON. Raises `UsageError` if that is not possible."""
    if isinstance(value, UnknownPart):
        value = value.json
    if isinstance(value, Raw):
        return _one_line(value)
    try:
        return _one_line(Raw(msgspec.json.encode(value)))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise UsageError(f"cannot be encoded as JSON: {error}") from error


def _one_line(raw: Raw) -> Raw:
    data = bytes(raw)
    try:
        data.decode("utf-8")
        try:
            msgspec.json.decode(data, type=Raw)
        except msgspec.DecodeError:
            msgspec.json.decode(replace_lone_surrogates(data), type=Raw)
    except DECODE_ERRORS as error:
        raise UsageError(f"not valid JSON: {error}") from error
    # A line feed between members is legal JSON and the end of the line for the CLI.
    return Raw(msgspec.json.format(data, indent=-1)) if b"\n" in data or b"\r" in data else raw


def replace_lone_surrogates(json: bytes) -> bytes:
    r"""Replace every escape of a lone surrogate by `\ufffd`.

    A CLI writes one when it cuts a text inside an emoji. It is legal JSON but not valid text, and
    our decoder refuses it. The length stays the same.
    """
    if _HALF.search(json) is None or b"\0" in json:
        return json  # nearly every line; and JSON has no null bytes
    # A function that is called for each escape would take seconds for a text of many lines.
    # Escaped backslashes are hidden, so that the text \\ud83d after one is not changed.
    hidden = json.replace(rb"\\", b"\0\0")
    mended = b"".join(_LONE.sub(rb"\\ufffd", part) for part in _parts(hidden))
    return mended.replace(b"\0\0", rb"\\")


def has_lone_surrogate(json: bytes) -> bool:
    """Whether `replace_lone_surrogates` would replace something."""
    if _HALF.search(json) is None or b"\0" in json:
        return False
    return any(_LONE.search(part) for part in _parts(json.replace(rb"\\", b"\0\0")))


def _parts(hidden: bytes) -> Iterator[bytes]:
    """The text in parts that are read one by one, in little time each. No pair is in two parts."""
    start, size = 0, len(hidden)
    while start < size:
        end = start + PART
        if end < size:
            # Not within an escape, which has six letters, and not after the first half of a pair.
            if (at := hidden.rfind(b"\\", end - 5, end)) >= 0:
                end = at
            end -= 6 if _HIGH.fullmatch(hidden, end - 6, end) else 0
        yield hidden[start:end]
        start = end


def is_object(raw: Raw) -> bool:
    """Whether the JSON is an object. It is taken to be valid."""
    return bytes(raw).lstrip(_blanks).startswith(b"{")


def is_null(raw: Raw) -> bool:
    """Whether the JSON is `null`."""
    return bytes(raw).strip(_blanks) == b"null"


def subtype_of(raw: Raw) -> str:
    """The `subtype` of an object, or nothing. Never raises."""
    try:
        return _subtype(raw).subtype
    except DECODE_ERRORS:
        return ""


def members(raw: Raw) -> dict[str, Raw]:
    """The members of an object, undecoded; empty for other JSON. Never raises."""
    try:
        return _members(raw)
    except DECODE_ERRORS:
        return {}


def plain_object(raw: Raw) -> dict[str, object]:
    """An object as plain Python values; empty for other JSON. Never raises."""
    try:
        return _plain(raw)
    except DECODE_ERRORS:
        try:
            return _plain(replace_lone_surrogates(bytes(raw)))
        except DECODE_ERRORS:
            return {}


def same_json(one: Raw, other: Raw) -> bool:
    """Whether two JSON texts are equal, apart from blanks and the order of members.

    Invalid JSON is equal only byte for byte. Never raises.
    """
    if bytes(one) == bytes(other):
        return True
    try:
        return _sorted(_any(one)) == _sorted(_any(other))
    except DECODE_ERRORS:
        return False


def elements(raw: Raw) -> list[Raw] | None:
    """The elements of an array, undecoded; None for other JSON. Never raises."""
    try:
        return _elements(raw)
    except DECODE_ERRORS:
        return None


def few_elements(raw: Raw) -> list[Raw] | None:
    """The elements of an array of at most `MOST_BLOCKS`; None for other JSON. Never raises.

    In little time and memory, however many there are.
    """
    try:
        found = _few(raw)
    except DECODE_ERRORS:
        return None
    every = (getattr(found, name) for name in found.__struct_fields__)
    return [each for each in every if each]


def has_type(raw: Raw) -> bool:
    """Whether the JSON is an object with a `type`. Never raises.

    In little time and memory, however many members it has.
    """
    try:
        return bool(_typed(raw).type)
    except DECODE_ERRORS:
        return False


def are_few_typed(raw: Raw) -> bool:
    """Whether the JSON is a list of 1 to `MOST_BLOCKS` objects with a `type`. Never raises.

    The same as `few_elements` and `has_type` for each, in one pass instead of three.
    """
    try:
        _few_typed(raw)
    except DECODE_ERRORS:
        return False
    return True
