"""Lines to messages and back.

Owns which struct a line becomes, in either direction, and the values for lines that fit none.
`peer` interprets the messages.

`from_cli` and `to_cli` never raise: a line that cannot be decoded is an `Unknown` or a `Malformed`.
`encode` returns the original line of a received message.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.base import Malformed, Message, Unknown
from quarterdeck.wire.line_reader import OversizedLine
from quarterdeck.wire.messages import FROM_CLI, FROM_CLI_TYPES, SystemHeader
from quarterdeck.wire.outbound import TO_CLI
from quarterdeck.wire.rawjson import replace_lone_surrogates
from quarterdeck.wire.system import SYSTEM

read_header: Callable[[bytes], Message] = msgspec.json.Decoder(FROM_CLI).decode
"""Decodes a line without its `raw`, and a system message only as a header. Raises errors."""
_to_cli: Callable[[bytes], Message] = msgspec.json.Decoder(TO_CLI).decode
_system: dict[str, Callable[[bytes], Message]] = {
    subtype: msgspec.json.Decoder(struct).decode for subtype, struct in SYSTEM.items()
}


_KNOWN_TO_CLI = frozenset(str(struct.__struct_config__.tag) for struct in TO_CLI.__args__)


class _Header(Struct):
    type: str
    subtype: str | None = None
    uuid: str | None = None
    session_id: str | None = None


class _Type(Struct):
    type: str


_header = msgspec.json.Decoder(_Header).decode
_type = msgspec.json.Decoder(_Type).decode
_any_object = msgspec.json.Decoder(dict[str, Raw]).decode

# A broken line may still identify its session. These two patterns find a session id and the mark of
# an init message in text that is not JSON.
_SESSION_ID = re.compile(rb"session(?:_id|Id)?(?:[\"'=\s:]+)([a-z0-9._-]{8,})", re.IGNORECASE)
_INIT = re.compile(rb"\[(?:init|system/init)\]|\bsubtype[\"'=\s:]+init\b", re.IGNORECASE)
_GUESS_WITHIN = 64 * 1024
"""Only the head of a broken line is searched, so that a huge one costs little."""


def from_cli(line: bytes, header: Message | None = None) -> Message:
    """Decode a line that a CLI sent. `header` is what `read_header` gave for it, if known."""
    try:
        message = header or read_header(line)
        if type(message) is SystemHeader:
            decode = _system.get(message.subtype)
            if decode is None:
                return _undecodable(line, None, FROM_CLI_TYPES)
            message = decode(line)
    except DECODE_ERRORS as error:
        return _decode_repaired(line, from_cli) or _undecodable(line, error, FROM_CLI_TYPES)
    message.__dict__["raw"] = line
    return message


def to_cli(line: bytes) -> Message:
    """Decode a line for a CLI."""
    try:
        message = _to_cli(line)
    except DECODE_ERRORS as error:
        return _decode_repaired(line, to_cli) or _undecodable(line, error, _KNOWN_TO_CLI)
    message.__dict__["raw"] = line
    return message


def from_oversized(line: OversizedLine) -> Malformed:
    """The value for a line over the limit."""
    return _to_malformed(line.head, f"line of {line.size} bytes is over the limit", line.size)


def encode(message: Message) -> bytes:
    """The line of a message, without its newline: the original where there was one."""
    return message.raw or msgspec.json.encode(message)


def _decode_repaired(line: bytes, decode: Callable[[bytes], Message]) -> Message | None:
    """Decode a line with a lone surrogate, which is legal JSON but not valid text.

    A CLI writes one when it cuts a text inside an emoji. `raw` keeps the original line.
    """
    repaired = replace_lone_surrogates(line)
    if repaired == line:
        return None
    message = decode(repaired)
    message.__dict__["raw"] = line
    return message


def _undecodable(
    line: bytes, error: Exception | None, known: frozenset[str]
) -> Unknown | Malformed:
    try:
        header = _read_header(line)
    except DECODE_ERRORS:
        return _without_type(line, error)
    message = Unknown(
        type=header.type,
        subtype=header.subtype,
        uuid=header.uuid,
        session_id=header.session_id,
        error=str(error) if error is not None and header.type in known else None,
    )
    message.__dict__["raw"] = line
    return message


def _read_header(line: bytes) -> _Header:
    try:
        return _header(line)
    except DECODE_ERRORS:
        return _Header(_type(line).type)  # keep the type when an id is not a string


def _without_type(line: bytes, error: Exception | None) -> Unknown | Malformed:
    """A JSON object whose `type` is missing or not a string is unknown; anything else is
    malformed.
    """
    try:
        _any_object(line)
    except DECODE_ERRORS as broken:
        return _to_malformed(line, str(broken), len(line))
    message = Unknown(type="", error=str(error) if error else None)
    message.__dict__["raw"] = line
    return message


def _to_malformed(head: bytes, error: str, size: int) -> Malformed:
    searched = head[:_GUESS_WITHIN]
    found = _SESSION_ID.search(searched)
    message = Malformed(
        error=error,
        size=size,
        session_id=found[1].decode("ascii") if found else None,
        is_init=_INIT.search(searched) is not None,
    )
    message.__dict__["raw"] = head
    return message
