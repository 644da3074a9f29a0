"""Lines of the control protocol, as the router reads and makes them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.rawjson import dump, members


class Envelope(Struct):
    """What is read of a line for the CLI."""

    type: str = ""
    request_id: str = ""
    uuid: str | None = None
    request: Raw = Raw(b"null")
    response: Raw = Raw(b"null")


class Reply(Struct):
    """What is read of an answer."""

    request_id: str = ""
    subtype: str = ""
    error: str = ""
    response: Raw = Raw(b"null")


class _Request(Struct):
    subtype: str = ""


read_envelope = msgspec.json.Decoder(Envelope).decode
_reply = msgspec.json.Decoder(Reply).decode
_request = msgspec.json.Decoder(_Request).decode


def hides_a_message(line: bytes) -> bool:
    """Whether a line that we cannot read may be a message for the CLI.

    The CLI reads more than we do: numbers as ids, halves of surrogate pairs, and blanks of other
    kinds around a line. What it would not read either, it refuses by itself.
    """
    text = line.decode("utf-8", "replace").strip("\ufeff\u180e").strip().strip("\ufeff\u180e")
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return isinstance(error, RecursionError)
    return True


def maybe_envelope(line: bytes) -> Envelope | None:
    """A line that the CLI may take, if it can be read."""
    try:
        return read_envelope(line)
    except DECODE_ERRORS:
        return None


def subtype_of(request: Raw) -> str:
    """The subtype of a request; empty if it has none."""
    try:
        return _request(request).subtype
    except DECODE_ERRORS:
        return ""


def read_reply(response: Raw) -> Reply:
    """An answer; an empty one if it cannot be read."""
    try:
        return _reply(response)
    except DECODE_ERRORS:
        return Reply()


def decision_of(reply: Reply) -> Raw:
    """What a program decided. A callback that failed has denied: so the CLI takes it."""
    if reply.subtype == "success":
        return reply.response
    text = f"Tool permission request failed: Error: {reply.error}"
    return dump({"behavior": "deny", "message": text})


def strings_of(value: Raw) -> list[str]:
    """A text or several, as a list; empty for others."""
    try:
        found = msgspec.json.decode(value, type=str | list[str])
    except DECODE_ERRORS:
        return []
    return [found] if isinstance(found, str) else found


def hooks_of(request: dict[str, Raw]) -> dict[str, list[Raw]]:
    """The hooks of an `initialize`, by event."""
    try:
        return (
            msgspec.json.decode(request.get("hooks", b"null"), type=dict[str, list[Raw]] | None)
            or {}
        )
    except DECODE_ERRORS:
        return {}


class _Matcher(Struct):
    hook_callback_ids: list[str] = field(name="hookCallbackIds", default_factory=list)


def callbacks_of(hooks: dict[str, list[Raw]]) -> set[str]:
    """The ids of all hooks."""
    return {each for matchers in hooks.values() for matcher in matchers for each in _ids(matcher)}


def _ids(matcher: Raw) -> Iterable[str]:
    try:
        return msgspec.json.decode(matcher, type=_Matcher).hook_callback_ids
    except DECODE_ERRORS:
        return ()


def merged_hooks(mine: dict[str, list[Raw]], other: dict[str, list[Raw]]) -> dict[str, list[Raw]]:
    """The hooks of both."""
    return {
        event: [*mine.get(event, ()), *other.get(event, ())]
        for event in dict.fromkeys((*mine, *other))
    }


def with_hooks(line: bytes, request: Raw, hooks: dict[str, list[Raw]]) -> bytes:
    """The same `initialize` with other hooks."""
    body = {**members(request), "hooks": hooks}
    return msgspec.json.encode({**members(Raw(line)), "request": body})


def refusal(request_id: str, error: str) -> bytes:
    """An answer that refuses a request."""
    response = {"subtype": "error", "request_id": request_id, "error": error}
    return msgspec.json.encode({"type": "control_response", "response": response})


def answer_to(request_id: str, response: Raw) -> bytes:
    """The same answer, to another request."""
    body = {**members(response), "request_id": request_id}
    return msgspec.json.encode({"type": "control_response", "response": body})


def cancel_of(request_id: str) -> bytes:
    """Takes a request back."""
    return msgspec.json.encode({"type": "control_cancel_request", "request_id": request_id})


def success(request_id: str, response: object) -> bytes:
    """An answer that does what was asked for."""
    body = {"subtype": "success", "request_id": request_id, "response": response}
    return msgspec.json.encode({"type": "control_response", "response": body})
