"""Stream events and their deltas."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.wire import codec
from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.content import StopReason, ToolUseBlock
from quarterdeck.wire.deltas import delta_text
from quarterdeck.wire.messages import StreamEvent
from quarterdeck.wire.stream import (
    CitationsDelta,
    CompactionDelta,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Delta,
    InputJsonDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    SignatureDelta,
    StreamFailure,
    TextDelta,
    ThinkingDelta,
    events,
)


def line(event: object) -> bytes:
    message = {"type": "stream_event", "event": event, "session_id": "s", "uuid": "u"}
    return json.dumps({**message, "parent_tool_use_id": None}).encode()


def stream_event(event: object) -> StreamEvent:
    message = codec.from_cli(line(event))
    assert isinstance(message, StreamEvent)
    return message


def block_delta(delta: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": 2, "delta": delta}


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"type": "text_delta", "text": "hi"}, TextDelta(text="hi")),
        ({"type": "input_json_delta", "partial_json": '{"a'}, InputJsonDelta(partial_json='{"a')),
        ({"type": "thinking_delta", "thinking": "hm"}, ThinkingDelta(thinking="hm")),
        ({"type": "signature_delta", "signature": "s"}, SignatureDelta(signature="s")),
        ({"type": "compaction_delta", "content": "c"}, CompactionDelta(content="c")),
    ],
)
def test_every_delta_has_its_type(delta: object, expected: Delta) -> None:
    event = stream_event(block_delta(delta)).event
    assert isinstance(event, ContentBlockDelta)
    assert event.index == 2
    assert event.delta == expected


def test_a_citation_stays_raw() -> None:
    event = stream_event(block_delta({"type": "citations_delta", "citation": {"x": 1}})).event
    assert isinstance(event, ContentBlockDelta)
    assert isinstance(event.delta, CitationsDelta)
    assert json.loads(bytes(event.delta.citation)) == {"x": 1}


def test_the_text_of_a_text_delta_is_at_hand() -> None:
    assert stream_event(block_delta({"type": "text_delta", "text": "ä\n"})).text == "ä\n"


@pytest.mark.parametrize(
    "event",
    [
        block_delta({"type": "input_json_delta", "partial_json": "text"}),
        block_delta({"type": "caption_delta", "text": "of another kind"}),
        block_delta({"type": "text_delta", "text": 5}),
        block_delta(None),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
        {},
        5,
    ],
)
def test_every_other_event_adds_no_text(event: object) -> None:
    assert stream_event(event).text == ""


def test_text_of_broken_json_is_empty() -> None:
    assert delta_text(Raw(b'{"delta":')) == ""
    assert delta_text(Raw(b"")) == ""


def test_a_tool_call_is_known_from_its_start() -> None:
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    event = stream_event({"type": "content_block_start", "index": 1, "content_block": block}).event
    assert isinstance(event, ContentBlockStart)
    assert isinstance(event.content_block, ToolUseBlock)
    assert event.content_block.name == "Bash"


def test_a_message_start_has_the_message() -> None:
    event = stream_event({"type": "message_start", "message": {"id": "m", "content": []}}).event
    assert isinstance(event, MessageStart)
    assert event.message.id == "m"
    assert event.message.content == ()


def test_a_message_delta_has_the_reason_and_the_usage() -> None:
    event = stream_event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens", "stop_sequence": None},
            "usage": {"output_tokens": 12},
        }
    ).event
    assert isinstance(event, MessageDelta)
    assert event.delta.stop_reason is StopReason.MAX_TOKENS
    assert event.usage.output_tokens == 12


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "content_block_stop", "index": 4}, ContentBlockStop(index=4)),
        ({"type": "message_stop"}, MessageStop()),
        ({"type": "ping"}, Ping()),
    ],
)
def test_events_without_a_body_are_plain(event: object, expected: object) -> None:
    assert stream_event(event).event == expected


def test_an_error_of_the_api_stays_raw() -> None:
    event = events.decode(b'{"type":"error","error":{"type":"overloaded_error"}}')
    assert isinstance(event, StreamFailure)
    assert bytes(event.error) == b'{"type":"overloaded_error"}'


def test_an_event_of_a_new_type_is_kept() -> None:
    event = stream_event({"type": "content_block_flip", "index": 1}).event
    assert isinstance(event, UnknownPart)
    assert event.kind == "content_block_flip"
    assert json.loads(bytes(event.json)) == {"type": "content_block_flip", "index": 1}


def test_a_delta_of_a_new_type_is_kept() -> None:
    event = stream_event(block_delta({"type": "smell_delta", "smell": "tar"})).event
    assert isinstance(event, ContentBlockDelta)
    assert isinstance(event.delta, UnknownPart)
    assert event.delta.kind == "smell_delta"


def test_the_event_is_not_decoded_until_somebody_asks() -> None:
    message = stream_event({"type": "content_block_delta", "index": "none", "delta": 5})
    assert "event" not in message.__dict__
    assert isinstance(message.event, UnknownPart)
    assert message.event is message.event


def test_members_of_newer_versions_are_read() -> None:
    text = line({"type": "message_start"})[:-1] + b',"ttft_ms":3.5,"api_message_id":"m"}'
    message = codec.from_cli(text)
    assert isinstance(message, StreamEvent)
    assert (message.ttft_ms, message.api_message_id) == (3.5, "m")
