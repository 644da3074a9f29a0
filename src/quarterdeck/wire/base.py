"""What every message of the protocol is made of.

Owns the base structs, the enumerations that stay open, the tagged unions that stay open, and the
two values for what we cannot read: `Unknown` (valid JSON that we have no type for) and `Malformed`
(not even that). The other modules of `wire` define messages with these; `codec` reads them.

The protocol grows with every release of the CLI, so nothing here refuses what is new. A message
keeps the line it came from in `raw`: passing it on is sending `raw` again, unknown members and
all. Parts whose shape may be new (content blocks, stream events, control bodies) stay undecoded
until somebody asks for them; what has no type then becomes an `Unknown…` value, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar, dataclass_transform, get_args

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.structs import NamedFields

T = TypeVar("T")

Number = int | float
"""A JSON number. Kept as it came, so that 1 does not become 1.0 on the way back."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Part(Struct, frozen=True, omit_defaults=True, dict=True, metaclass=NamedFields):
    """Something inside a message. Members that we do not know are skipped.

    `dict=True` lets a part cache what it decodes on demand (`functools.cached_property`).
    """


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Message(Struct, frozen=True, omit_defaults=True, dict=True, metaclass=NamedFields):
    """One line of the protocol.

    `raw` is the line as it came, without its newline; empty on a message that was made here. It is
    no field: it takes no part in equality, `repr`, or `msgspec.structs.replace`, so that a changed
    copy never encodes as the original.
    """

    raw: ClassVar[bytes] = b""


class OpenEnum(StrEnum):
    """An enumeration to which the CLI may add: a value that we do not know is a member too.

    Such a member is named `UNKNOWN`, equals its own string, and encodes as it came.
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
    """A line that is no JSON object at all, or that was too long to be kept.

    `session_id` and `is_init` are guesses from the text, so that a front can still tell whose line
    it was. `size` is the length of the line; `raw` holds all of it, or the head of one too long.
    """

    error: str
    size: int
    session_id: str | None = None
    is_init: bool = False


class _Kind(Struct):
    """Just enough of a JSON object to tell what it is."""

    type: str | None = None
    subtype: str | None = None
    behavior: str | None = None


class OpenUnion(Generic[T]):
    """A tagged union that gives an `UnknownPart` for what is none of its members.

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
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            part = unknown_part(json, error)
            if part.kind and part.kind not in self._kinds:  # merely new, which is no error
                return msgspec.structs.replace(part, error=None)
            return part

    def decode_each(self, parts: Iterable[Raw]) -> tuple[T | UnknownPart, ...]:
        """Decode a sequence of members, each by itself, so that a new one hides no other."""
        return tuple(self.decode(part) for part in parts)


_decode_kind = msgspec.json.Decoder(_Kind).decode


def unknown_part(json: Raw | bytes, error: Exception | None = None) -> UnknownPart:
    """Wrap JSON that fits no type of ours. Never raises, whatever the bytes are."""
    try:
        found = _decode_kind(json)
        kind = found.type or found.subtype or found.behavior or ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        kind = ""
    return UnknownPart(
        kind=kind,
        json=json if isinstance(json, Raw) else Raw(json),
        error=str(error) if error else None,
    )
