"""Text in the making: what is read at one look is what is read with care."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quarterdeck.hub.deltas import DeltaReader
from quarterdeck.protocol.views import Deltas, merge_deltas
from quarterdeck.wire import codec
from quarterdeck.wire.messages import StreamEvent


def line_of(event: dict[str, Any], parent: str | None = None) -> bytes:
    body = {"type": "stream_event", "event": event, "session_id": "s", "uuid": "u"}
    return json.dumps({**body, "parent_tool_use_id": parent}, separators=(",", ":")).encode()


def piece(delta: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def started(reader: DeltaReader) -> DeltaReader:
    start = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant"}}
    message = codec.from_cli(line_of(start))
    assert isinstance(message, StreamEvent)
    reader.read(message)
    return reader


@pytest.mark.parametrize(
    "delta",
    [
        {"type": "text_delta", "text": 'Hello, "wörld" \n'},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "input_json_delta", "partial_json": '{"a'},
    ],
)
def test_a_piece_is_the_same_at_one_look_and_with_care(delta: dict[str, Any]) -> None:
    line = line_of(piece(delta, index=3))
    message = codec.from_cli(line)
    assert isinstance(message, StreamEvent)
    reader = started(DeltaReader("s1"))
    assert reader.read_piece(line) == reader.read(message)


@pytest.mark.parametrize(
    "line",
    [
        line_of({"type": "message_stop"}),
        line_of(piece({"type": "text_delta", "text": "x"}), parent="toolu_1"),
        line_of(piece({"type": "new_delta", "text": "x"})),
        line_of(piece({"type": "text_delta"})),
        line_of(piece({"type": "text_delta", "text": "x"})).replace(b'"x"', rb'"\ud83d"'),
        line_of(piece({"type": "text_delta", "text": "x"})).replace(b'"x"', b'"\xff"'),
        line_of(piece({"type": "text_delta", "text": "x"}))[:-1],
        b'{"type":"assistant","message":{}}',
        b"",
    ],
)
def test_any_other_line_is_left_to_be_heard(line: bytes) -> None:
    assert started(DeltaReader("s1")).read_piece(line) is None


def test_neighbours_of_one_block_become_one_piece() -> None:
    def said(text: str, block: int = 0, *, thinking: bool = False) -> Deltas:
        return Deltas(session="s1", message="m", text=text, block=block, thinking=thinking)

    pieces = [said("a"), said("b"), said("c", 1), said("d"), said("e", thinking=True)]
    assert merge_deltas(pieces) == [said("ab"), said("c", 1), said("d"), said("e", thinking=True)]
    assert merge_deltas([said("a"), said("b"), said("c")]) == [said("abc")]
    assert merge_deltas([]) == []
