"""A reply as the Messages API sends it: server-sent events, or one JSON body.

Pure functions from `script` to bytes. `model` waits, cuts and sends: where a reply waits or breaks
off, the step itself is yielded between the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from quarterdeck.testing.script import (
    ApiError,
    CutConnection,
    Gate,
    MidStreamError,
    Pause,
    Reply,
    ResponseHeaders,
    Stop,
    Text,
    Thinking,
    ToolUse,
)

Fields = dict[str, object]
Interlude = Pause | Gate | CutConnection

# Fixed numbers: usage and cost in a test must not depend on the length of a prompt.
_INPUT: Fields = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}
_OUTPUT_TOKENS = 5


def stream(
    reply: Reply, message_id: str, model: str, new_tool_id: Callable[[], str]
) -> Iterator[bytes | Interlude]:
    """The events of a reply in order, with the waits and the cut where they belong."""
    start = _message(message_id, model) | {"usage": _INPUT | {"output_tokens": 1}}
    yield _event("message_start", {"message": start})
    index = 0
    for step in reply.steps:
        match step:
            case Text(text, times=times, delay=delay):
                yield _start(index, {"type": "text", "text": ""})
                for number in range(times):
                    if number and delay:
                        yield Pause(delay)
                    yield _delta(index, {"type": "text_delta", "text": text})
            case Thinking(thinking, signature=signature):
                yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
                yield _delta(index, {"type": "thinking_delta", "thinking": thinking})
                yield _delta(index, {"type": "signature_delta", "signature": signature})
            case ToolUse(tool, input=given, id=tool_id):
                block = {"type": "tool_use", "id": tool_id or new_tool_id(), "name": tool}
                yield _start(index, block | {"input": {}})
                # In pieces, as the API does: a reader of the stream must join them.
                text = msgspec.json.encode(given).decode()
                half = len(text) // 2
                for piece in (text[:half], text[half:]):
                    yield _delta(index, {"type": "input_json_delta", "partial_json": piece})
            case Pause() | Gate():
                yield step
                continue
            case CutConnection():
                yield step
                return
            case MidStreamError(fault, message=message):
                yield _event("error", {"error": {"type": fault, "message": message}})
                return
            case Stop() | ApiError() | ResponseHeaders():
                continue
        yield _event("content_block_stop", {"index": index})
        index += 1
    ending: Fields = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    usage: Fields = {"output_tokens": _OUTPUT_TOKENS}
    yield _event("message_delta", {"delta": ending, "usage": usage})
    yield _event("message_stop", {})


def body(reply: Reply, message_id: str, model: str, new_tool_id: Callable[[], str]) -> bytes:
    """The reply as one body, without the faults of a stream."""
    content: list[Fields] = []
    for step in reply.steps:
        match step:
            case Text(text, times=times):
                content.append({"type": "text", "text": text * times})
            case Thinking(thinking, signature=signature):
                content.append({"type": "thinking", "thinking": thinking, "signature": signature})
            case ToolUse(tool, input=given, id=tool_id):
                call = {"type": "tool_use", "id": tool_id or new_tool_id(), "name": tool}
                content.append(call | {"input": given})
            case _:
                continue
    ending: Fields = {"content": content, "stop_reason": reply.stop_reason}
    usage: Fields = {"usage": _INPUT | {"output_tokens": _OUTPUT_TOKENS}}
    return msgspec.json.encode(_message(message_id, model) | ending | usage)


def error_body(kind: str, message: str) -> bytes:
    """The body of an HTTP error."""
    return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": message}})


def _message(message_id: str, model: str) -> Fields:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _start(index: int, block: Fields) -> bytes:
    return _event("content_block_start", {"index": index, "content_block": block})


def _delta(index: int, delta: Fields) -> bytes:
    return _event("content_block_delta", {"index": index, "delta": delta})


def _event(kind: str, fields: Fields) -> bytes:
    data = msgspec.json.encode({"type": kind} | fields)
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
