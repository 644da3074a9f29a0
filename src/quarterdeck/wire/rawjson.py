"""Undecoded JSON.

Owns encoding a value for a message, and the checks that keep a message one line of valid JSON.
Every version of the CLI exits on a broken line, and a tool's input or an answer may come from
anywhere, so everything is checked before it becomes `Raw`.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.base import UnknownPart

T = TypeVar("T")

EMPTY = Raw(b"{}")
"""An object without members."""

_blanks = b" \t\r\n"

# Every escape is matched, so that the text \\ud83d after an escaped backslash is not changed.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class _Subtype(Struct):
    subtype: str = ""


_subtype = msgspec.json.Decoder(_Subtype).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_elements = msgspec.json.Decoder(list[Raw]).decode
_plain = msgspec.json.Decoder(dict[str, object]).decode
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
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], json)


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
