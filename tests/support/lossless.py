"""What a decoded message has lost of the line that it came from.

The codec sends `raw` again, so nothing is lost there. Here the structs themselves are tried: every
member that they know must come out of them as it went in, also through parts decoded on demand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import NODEFAULT, Raw, Struct

from quarterdeck.wire.base import Message, UnknownPart


def lost(message: Message) -> list[str]:
    """The paths of members whose value is not what the line says."""
    return list(_compare(message, json.loads(message.raw), type(message).__name__))


def plain(value: object) -> Any:
    """What a value is once encoded."""
    return json.loads(msgspec.json.encode(value))


def _compare(value: object, line: Any, path: str) -> Iterator[str]:
    if isinstance(value, UnknownPart):
        yield from _compare(value.json, line, path)
    elif isinstance(value, Struct) and isinstance(line, dict):
        yield from _compare_struct(value, line, path)
    elif isinstance(value, tuple) and isinstance(line, list):
        if len(value) != len(line):
            yield path
        for index, (element, plain_element) in enumerate(zip(value, line, strict=False)):
            yield from _compare(element, plain_element, f"{path}[{index}]")
    elif isinstance(value, dict) and isinstance(line, dict):
        if value.keys() != line.keys():
            yield path
        for key in value.keys() & line.keys():
            yield from _compare(value[key], line[key], f"{path}.{key}")
    elif (isinstance(value, Raw) and not value) or json.dumps(plain(value)) != json.dumps(line):
        yield path


def _compare_struct(value: Struct, line: dict[str, Any], path: str) -> Iterator[str]:
    encoded = plain(value)
    yield from (f"{path}.{member}: made up" for member in encoded.keys() - line.keys())
    config = value.__struct_config__
    if config.tag_field is not None and line.get(config.tag_field, config.tag) != config.tag:
        yield f"{path}.{config.tag_field}"
    for field in msgspec.structs.fields(type(value)):
        if field.encode_name not in line:
            continue
        member = line[field.encode_name]
        here = f"{path}.{field.encode_name}"
        if field.encode_name not in encoded:
            default = field.default_factory() if field.default is NODEFAULT else field.default
            if plain(default) != member:
                yield here
            continue
        decoded = getattr(value, field.name.removesuffix("_json"), None)
        if decoded is None or (type(decoded) is tuple and not isinstance(member, list)):
            decoded = getattr(value, field.name)
        yield from _compare(decoded, member, here)
