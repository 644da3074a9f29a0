"""The way all our structs are: frozen, and with fields that are named when they are given."""

from __future__ import annotations

from typing import Any, dataclass_transform

from msgspec import Raw, Struct, StructMeta, field

ABSENT = Raw()
"""JSON that is not there. It is false, and left out when its struct is encoded. (An optional
`Raw | None` would not do: msgspec then takes null only.)"""


def name_set(text: str) -> frozenset[str]:
    """A set of names, written as one text with blanks between them."""
    return frozenset(text.split())


class NamedFields(StructMeta):
    """Makes every field of every subclass keyword-only, so that order is never a contract."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> NamedFields:
        config.setdefault("kw_only", True)
        return super().__new__(mcs, name, bases, namespace, **config)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, omit_defaults=True, metaclass=NamedFields):
    """A frozen struct whose fields are keyword-only; defaults are left out when it is encoded."""
