"""The building blocks of the protocol's messages.

Owns the base structs, open enumerations, open tagged unions, and the two values for messages that
we cannot read: `Unknown` (valid JSON without a type here) and `Malformed` (any other line). The
other modules of `wire` define messages with these; `codec` decodes them.

The protocol grows with every release of the CLI, so nothing new is refused. A message keeps its
line in `raw`; to forward it, send `raw`, unknown members included. Parts that may take new forms
(content blocks, stream events, control bodies) are decoded on demand; a part without a type becomes
an `Unknown…` value, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar, dataclass_transform, get_args

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.structs import DECODE_ERRORS, NamedFields

T = TypeVar("T")

Number = int | float
"""A JSON number. Its type is kept, so that 1 does not become 1.0 when it is encoded again."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Part(Struct, frozen=True, omit_defaults=True, dict=True, metaclass=NamedFields):
    """A part of a message. Unknown members are skipped.

    `dict=True` lets a part cache values that it decodes on demand (`functools.cached_property`).
    """


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Message(Struct, frozen=True, omit_defaults=True, dict=True, metaclass=NamedFields):
    """One line of the protocol.

    `raw` is the received line without its newline; empty for a message that was made here. It is
    not a field: it does not affect equality, `repr` or `msgspec.structs.replace`, so that a changed
    copy never encodes as the original.
    """

    raw: ClassVar[bytes] = b""


class OpenEnum(StrEnum):
    """An open enumeration: an unknown value of the CLI is a member too.

    Such a member is named `UNKNOWN`, equals its own string, and encodes unchanged.
    """

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = "UNKNOWN"
        member._value_ = value
        return member

    @property
    def known(self) -> bool:
        """Whether this is a value that we have a name for."""
        return self._name_ != "UNKNOWN"


class UnknownPart(Part):
    """A part that we have no type for, or that does not fit its type (then `error` says why)."""

    kind: str = ""
    json: Raw = Raw(b"null")
    error: str | None = None


class Unknown(Message):
    """A JSON object that we have no type for, or that does not fit its type (`error` says why)."""

    type: str
    subtype: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    error: str | None = None


class Malformed(Message):
    """A line that is not a JSON object, or that was too long.

    `session_id` and `is_init` are guesses from the text, so that a front can still assign the line
    to a session. `size` is the length of the line; `raw` holds all of it, or the head of a line
    that was too long.
    """

    error: str
    size: int
    session_id: str | None = None
    is_init: bool = False


class _Kind(Struct):
    """The members of a JSON object that identify its type."""

    type: str | None = None
    subtype: str | None = None
    behavior: str | None = None


class OpenUnion(Generic[T]):
    """A tagged union that decodes any other JSON to an `UnknownPart`.

    ::

        Delta = TextDelta | InputJsonDelta
        deltas: OpenUnion[Delta] = OpenUnion(Delta)
        deltas.decode(raw)   # -> TextDelta | InputJsonDelta | UnknownPart
    """

    def __init__(self, union: object) -> None:
        decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(union)
        self._decode = decoder.decode
        members = get_args(union) or (union,)
        self._kinds = frozenset(str(member.__struct_config__.tag) for member in members)

    def decode(self, json: Raw | bytes) -> T | UnknownPart:
        """Decode one member. Never raises."""
        try:
            return self._decode(json)
        except DECODE_ERRORS as error:
            part = unknown_part(json, error)
            if part.kind and part.kind not in self._kinds:  # a new kind is not an error
                return msgspec.structs.replace(part, error=None)
            return part

    def decode_each(self, parts: Iterable[Raw] | None) -> tuple[T | UnknownPart, ...]:
        """Decode a sequence of members, each separately, so that a new one does not affect the
        others. None is an absent sequence.
        """
        return tuple(self.decode(part) for part in parts or ())


_decode_kind = msgspec.json.Decoder(_Kind).decode


def unknown_part(json: Raw | bytes, error: Exception | None = None) -> UnknownPart:
    """Wrap JSON that fits no type of ours. Never raises, for any bytes."""
    try:
        found = _decode_kind(json)
        kind = found.type or found.subtype or found.behavior or ""
    except DECODE_ERRORS:
        kind = ""
    return UnknownPart(
        kind=kind,
        json=json if isinstance(json, Raw) else Raw(json),
        error=str(error) if error else None,
    )
