"""Common parts of the CLI's messages.

Owns the base of all `system` messages, and lazy decoding of parts. It knows none of the
modules that define messages.

The convention for a lazy part: a field `x_json` holds the undecoded JSON, and a cached property `x`
decodes it. `survey` relies on these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import Raw, field

from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.base import Message, Part

T = TypeVar("T")


class System(Message, tag_field="subtype"):
    """A `system` message. Its subtype determines its type; the subclasses are in `system` and
    nearby.

    `untyped` names known members of the CLI without a field here: they are for the CLI's makers,
    vary often, and are not used.
    """

    untyped: ClassVar[frozenset[str]] = frozenset()

    # A factory, not a plain default: members equal to a plain default are not encoded.
    type: Literal["system"] = field(default_factory=lambda: "system")
    uuid: str = ""
    session_id: str = ""


class Body(Part):
    """A part that is decoded on demand. `error` says why the JSON did not fit.

    It is not a field, like `raw` of a message. A part with an error has only defaults.
    """

    error: ClassVar[str | None] = None


class Lazy(Generic[T]):
    """Decodes a part on demand. Never raises: JSON that does not fit gives `empty()`.

    A `Body` keeps the error.
    """

    def __init__(self, shape: type[T], empty: Callable[[], T]) -> None:
        self._decode = msgspec.json.Decoder(shape).decode
        self._empty = empty

    def __call__(self, json: Raw) -> T:
        """Decode, or give the empty part where the member is absent, null, or of another shape."""
        return self._empty() if _is_missing(json) else self._decode_or_empty(json)

    def maybe(self, json: Raw) -> T | None:
        """Decode, or give None where the member is absent or null."""
        return None if _is_missing(json) else self._decode_or_empty(json)

    def _decode_or_empty(self, json: Raw) -> T:
        try:
            return self._decode(json)
        except DECODE_ERRORS as error:
            part = self._empty()
            if isinstance(part, Body):
                part.__dict__["error"] = str(error)
            return part


def _is_missing(json: Raw) -> bool:
    return not json or (len(json) == 4 and bytes(json) == b"null")
