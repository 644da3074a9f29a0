"""Pictures and documents in events: left out of what is sent, and read one at a time.

An event can hold the same picture several times, and so can several events: a prompt, the CLI's
echo of it, a result and its other form. The journal keeps all of them as they are. A client that
asks for it gets the path of each instead of its data, and reads the ones that it shows. The path
has the digest of the data: what is behind it never changes. Below are the events; pure.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from quarterdeck.domain.structs import Value

LARGE = 4 * 1024
"""Letters of data that are replaced: fewer are not worth a request."""
_MARK = b'"base64"'
_DATA = "data"
_BASE64 = "base64"

SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})
"""What is given as what it is. Anything else is bytes."""


class Picture(Value):
    """A picture or a document."""

    kind: str
    """Its media type."""
    body: bytes


def picture_path(session: str, seq: int, data: str) -> str:
    """Where the data of a picture in an event is read."""
    return f"/api/sessions/{quote(session, safe='')}/events/{seq}/pictures/{digest_of(data)}"


def digest_of(data: str) -> str:
    """The name of a picture: of its data in base64."""
    return hashlib.sha256(data.encode(errors="replace")).hexdigest()[:32]


def with_paths(session: str, seq: int, json: bytes) -> bytes:
    """An event's JSON; where it has the data of a picture, this is empty, and `url` is its path."""
    if len(json) < LARGE or _MARK not in json:
        return json
    event: Any = msgspec.json.decode(json)
    changed = False
    for holder, member in _holders(event):
        holder["url"] = picture_path(session, seq, holder[member])
        holder[member] = ""
        changed = True
    return msgspec.json.encode(event) if changed else json


def raw_events_with_paths(text: str) -> str:
    """The same for the JSON of several events in their envelopes."""
    if len(text) < LARGE or '"base64"' not in text:
        return text
    envelopes: Any = msgspec.json.decode(text)
    for one in envelopes:
        for holder, member in _holders(one["event"]):
            holder["url"] = picture_path(one["session"], one["seq"], holder[member])
            holder[member] = ""
    return msgspec.json.encode(envelopes).decode()


def find_picture(json: bytes, digest: str) -> Picture | None:
    """The picture of an event with this digest."""
    for holder, member in _holders(msgspec.json.decode(json)):
        if digest_of(holder[member]) != digest:
            continue
        try:
            body = binascii.a2b_base64(holder[member])
        except ValueError:
            return None
        kind = holder.get("media_type") if member == _DATA else holder.get("type")
        if not isinstance(kind, str) or kind not in SHOWN:
            kind = "application/octet-stream"
        return Picture(kind=kind, body=body)
    return None


def _holders(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Each object that holds the data of a picture, and the member that has it.

    Those are blocks as the model has them, and results of the CLI's own tools.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            if one.get("type") == _BASE64 and _is_large(one.get(_DATA)):
                yield one, _DATA
            elif _is_large(one.get(_BASE64)):
                yield one, _BASE64
            else:
                waiting += one.values()


def _is_large(data: Any) -> bool:
    return isinstance(data, str) and len(data) >= LARGE
