"""Members of a message without a type here.

Compares a line with its decoded struct, for `quarterdeck doctor`: run against a newer CLI, it
reports what is new there. It reads the struct definitions, so it needs no list. It is not optimised
for speed.

A finding is one line of text that begins with a path::

    assistant.message.content[tool_use].caller        a member
    system/humming: unknown type
    assistant.message.content[hologram]: unknown part
    system/status.status: unknown value "humming"
    result.usage: does not fit (Expected `object`, got `array`)
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.base import Malformed, Message, OpenEnum, Unknown, UnknownPart
from quarterdeck.wire.envelope import Body
from quarterdeck.wire.hooks import UnknownHook
from quarterdeck.wire.rawjson import replace_lone_surrogates
from quarterdeck.wire.requests import UnknownRequest

_LAZY = "_json"
"""A field that ends so holds JSON; the property without the ending decodes it."""


def unknown_members(message: Message) -> list[str]:
    """All that the message's line holds and our types do not know; nothing for one made here."""
    if not message.raw:
        return []
    if isinstance(message, Malformed):
        return [f"malformed line: {message.error}"]
    if isinstance(message, Unknown):
        name = "/".join(filter(None, (message.type, message.subtype))) or "(no type)"
        fault = f"does not fit ({message.error})" if message.error else "unknown type"
        return [f"{name}: {fault}"]
    try:
        json = msgspec.json.decode(replace_lone_surrogates(message.raw))
    except DECODE_ERRORS as error:
        return [f"{_name(message)}: cannot be compared ({error})"]
    # Many elements of a list may have the same new member: once is enough.
    return list(dict.fromkeys(_struct(message, json, _name(message))))


def _name(message: Message) -> str:
    tag = message.__struct_config__.tag
    return f"system/{tag}" if message.__struct_config__.tag_field == "subtype" else str(tag)


def _walk(value: object, json: object, path: str) -> Iterator[str]:
    """Compare a decoded value with the plain JSON that it came from."""
    match value:
        case UnknownPart() | UnknownRequest() | UnknownHook():
            kind = _kind(value)
            # A tag that no member of the union has is the plain case, and no fault of the shape.
            new = (value.error or "").startswith(f"Invalid value {kind!r}")
            yield f"{path}[{kind}]: {_fault(None if new else value.error)}"
        case Body(error=str(error)):
            yield f"{path}: {_fault(error)}"
        case Struct():
            tag = value.__struct_config__.tag
            yield from _struct(
                value, json, path if tag is None or isinstance(value, Body) else f"{path}[{tag}]"
            )
        case OpenEnum() if not value.known:
            yield f'{path}: unknown value "{value}"'
        case tuple() | list() if isinstance(json, list):
            for element, plain in zip(value, json, strict=False):
                yield from _walk(element, plain, path)
        case dict() if isinstance(json, dict):
            if json and not value:
                yield f"{path}: {_fault('values of another shape')}"
            for key, element in value.items():
                yield from _walk(element, json.get(key), f"{path}.*")
        case _:
            return


def _struct(value: Struct, json: object, path: str) -> Iterator[str]:
    if not isinstance(json, dict):
        return
    kind = type(value)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    skipped = {kind.__struct_config__.tag_field, *getattr(kind, "untyped", ())}
    for member, plain in json.items():
        if member in skipped:
            continue
        name = fields.get(member)
        if name is None:
            yield f"{path}.{member}"
            continue
        decoded = name.removesuffix(_LAZY)
        yield from _walk(getattr(value, decoded, None), plain, f"{path}.{member}")


def _kind(part: UnknownPart | UnknownRequest | UnknownHook) -> str:
    match part:
        case UnknownPart(kind=kind) | UnknownRequest(subtype=kind) | UnknownHook(event=kind):
            return kind


def _fault(error: str | None) -> str:
    return f"does not fit ({error})" if error else "unknown part"
