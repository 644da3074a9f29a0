"""The way our structs are: frozen, and with fields that are named when they are given.

`Mutable` is the exception: the parts of a state that is changed in place and stored.
"""

from __future__ import annotations

from typing import Any, dataclass_transform

from msgspec import DecodeError, Raw, Struct, StructMeta, field

DECODE_ERRORS = (DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions of decoding JSON that is not trusted."""

ABSENT = Raw()
"""Absent JSON. It is falsy, and left out when its struct is encoded. (`Raw | None` does not work:
msgspec then accepts only null.)"""


def name_set(text: str) -> frozenset[str]:
    """A set of names, written as one text with blanks between them."""
    return frozenset(text.split())


class NamedFields(StructMeta):
    """Makes the fields of every subclass keyword-only, so that their order is not part of the
    contract.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> NamedFields:
        config.setdefault("kw_only", True)
        return super().__new__(mcs, name, bases, namespace, **config)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, omit_defaults=True, metaclass=NamedFields):
    """A frozen struct with keyword-only fields. Fields equal to their default are not encoded."""


@dataclass_transform(field_specifiers=(field,))
class Mutable(Struct, omit_defaults=True):
    """The state of something, which changes in place. It can be stored as JSON, and read again.

    All that it holds is a field, so that nothing is forgotten when it is stored.
    """
