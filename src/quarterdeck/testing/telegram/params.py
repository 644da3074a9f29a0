"""The parameters of a call, from a query, a form, a multipart form or JSON; and its files.

Telegram takes all four. In forms every value is a text, and objects are JSON in a text; a parameter
that is wrong is refused with a description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.testing.telegram.refusal import bad

_Kind = TypeVar("_Kind")
_DISPOSITION = re.compile(rb'; *(name|filename)="([^"]*)"')


class SentFile(Value):
    """A file that came with a call."""

    name: str
    data: bytes


class Params:
    """The parameters of one call."""

    def __init__(self, values: Mapping[str, Any], files: Mapping[str, SentFile]) -> None:
        self.values = dict(values)
        self.files = dict(files)

    def has(self, name: str) -> bool:
        """Whether it was given."""
        return self.values.get(name) is not None or name in self.files

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool | dict | list):
            raise bad(f"parameter {name} must be a string")
        return str(value)

    def number(self, name: str) -> int | None:
        """A whole number; None if it was not given."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            if isinstance(value, bool):
                raise ValueError
            return int(value)
        except (TypeError, ValueError):
            raise bad(f"parameter {name} must be an integer") from None

    def need_number(self, name: str) -> int:
        """A whole number that must be given."""
        value = self.number(name)
        if value is None:
            raise bad(f"parameter {name} is required")
        return value

    def flag(self, name: str) -> bool:
        """A truth value."""
        value = self.values.get(name)
        if isinstance(value, str):
            return value.lower() in {"true", "yes", "1"}
        return bool(value)

    def get(self, name: str, kind: type[_Kind]) -> _Kind | None:
        """An object, which forms have as JSON; None if it was not given."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            if isinstance(value, str):
                return msgspec.json.decode(value, type=kind)
            return msgspec.convert(value, kind)
        except (*DECODE_ERRORS, msgspec.ValidationError) as error:
            raise bad(f"can't parse {name}: {error}") from None


def read_params(query: bytes, content_type: str, body: bytes) -> Params:
    """The parameters of a request."""
    values: dict[str, Any] = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    files: dict[str, SentFile] = {}
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" and body:
        try:
            given = msgspec.json.decode(body)
        except DECODE_ERRORS:
            raise bad("can't parse request JSON") from None
        if not isinstance(given, dict):
            raise bad("the request must be a JSON object")
        values |= given
    elif kind == "application/x-www-form-urlencoded":
        try:
            values |= dict(parse_qsl(body.decode(), keep_blank_values=True))
        except UnicodeDecodeError:
            raise bad("strings must be encoded in UTF-8") from None
    elif kind == "multipart/form-data":
        more, files = _read_multipart(content_type, body)
        values |= more
    return Params(values, files)


def _read_multipart(content_type: str, body: bytes) -> tuple[dict[str, str], dict[str, SentFile]]:
    found = re.search(r'boundary="?([^";]+)"?', content_type)
    if found is None:
        raise bad("the form has no boundary")
    mark = b"\r\n--" + found[1].encode("latin-1")
    values: dict[str, str] = {}
    files: dict[str, SentFile] = {}
    for piece in (b"\r\n" + body).split(mark)[1:-1]:
        head, separator, data = piece.partition(b"\r\n\r\n")
        line = next(
            (row for row in head.split(b"\r\n") if row.lower().startswith(b"content-disposition:")),
            b"",
        )
        named = dict(_DISPOSITION.findall(line))
        if not separator or b"name" not in named:
            raise bad("can't parse the form")
        name = named[b"name"].decode("utf-8", "replace")
        if b"filename" in named:
            files[name] = SentFile(name=named[b"filename"].decode("utf-8", "replace"), data=data)
        else:
            values[name] = data.decode("utf-8", "replace")
    return values, files
