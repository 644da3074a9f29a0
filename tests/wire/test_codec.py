"""Lines to messages and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.wire import codec
from quarterdeck.wire.base import Malformed, Unknown
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.line_reader import LineReader, OversizedLine
from quarterdeck.wire.messages import Assistant, PromptSuggestion, Result, StreamEvent, User
from quarterdeck.wire.outbound import KeepAlive
from quarterdeck.wire.survey import unknown_members
from quarterdeck.wire.system import Init, Status
from support.lossless import lost

FIXTURES = Path(__file__).parent.parent / "fixtures"
EVERY_MESSAGE = (FIXTURES / "messages" / "every_message.ndjson").read_bytes().splitlines()


def numbers() -> st.SearchStrategy[Any]:
    return st.integers() | st.floats(allow_nan=False, allow_infinity=False)


json_values = st.recursive(
    st.none() | st.booleans() | numbers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)
# Objects that look like messages, with members of any shape under names that our types know.
lookalikes = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["assistant", "user", "system", "result", "stream_event", "x"])
        | json_values,
        "subtype": st.sampled_from(["init", "status", "success", "x"]) | json_values,
        "message": json_values,
        "event": json_values,
        "uuid": json_values,
        "session_id": json_values,
        "usage": json_values,
        "tools": json_values,
        "permissionMode": json_values,
        "novelty": json_values,
    },
)

# Text as JavaScript knows it: halves of characters, whole ones, and backslashes between them.
half_texts = st.lists(
    st.sampled_from(["\ud83d", "\ude00", "\U0001f600", "\\", "ud83d", '"', "a", "ä"]), max_size=20
).map("".join)


@pytest.mark.parametrize("line", EVERY_MESSAGE, ids=lambda line: json.loads(line).get("subtype"))
def test_every_message_of_the_newest_version_is_known_and_loses_nothing(line: bytes) -> None:
    message = codec.from_cli(line)
    assert not isinstance(message, Unknown | Malformed)
    assert unknown_members(message) == []
    assert lost(message) == []


def test_a_loss_would_be_noticed() -> None:
    message = codec.from_cli(b'{"type":"result","subtype":"success","usage":{"input_tokens":1}}')
    message.__dict__["raw"] = (
        b'{"type":"result","subtype":"success","result":"more","usage":{"input_tokens":1.0}}'
    )
    assert lost(message) == ["Result.result", "Result.usage.input_tokens"]


def test_a_message_goes_on_as_the_very_line_it_came_from() -> None:
    line = b'{ "type":"assistant", "message":{"content":[]}, "new":1.50, "uuid":"u" }'
    assert codec.encode(codec.from_cli(line)) == line


def test_a_message_made_here_is_encoded_from_its_fields() -> None:
    init = Init(cwd="/x", session_id="s")
    assert json.loads(codec.encode(init)) == {
        "type": "system",
        "subtype": "init",
        "cwd": "/x",
        "session_id": "s",
    }


def test_a_changed_copy_does_not_go_on_as_the_original() -> None:
    status = codec.from_cli(b'{"type":"system","subtype":"status","status":null,"uuid":"u"}')
    changed = msgspec.structs.replace(status, uuid="v")
    assert json.loads(codec.encode(changed))["uuid"] == "v"


def test_the_type_may_come_last() -> None:
    line = b'{"subtype":"success","duration_ms":1,"usage":{"type":"x"},"uuid":"u","type":"result"}'
    assert isinstance(codec.from_cli(line), Result)
    line = b'{"cwd":"/","tools":["a"],"subtype":"init","type":"system"}'
    assert isinstance(codec.from_cli(line), Init)


def test_a_message_of_a_new_type_is_kept_with_what_every_message_has() -> None:
    line = b'{"type":"weather","uuid":"u","session_id":"s","sky":"blue"}'
    message = codec.from_cli(line)
    assert message == Unknown(type="weather", uuid="u", session_id="s")
    assert codec.encode(message) == line


def test_a_system_message_of_a_new_subtype_is_kept() -> None:
    message = codec.from_cli(b'{"type":"system","subtype":"humming","uuid":"u","tune":1}')
    assert message == Unknown(type="system", subtype="humming", uuid="u")


def test_a_new_member_is_no_trouble() -> None:
    line = b'{"type":"system","subtype":"init","cwd":"/x","novelty":{"a":[1]}}'
    message = codec.from_cli(line)
    assert isinstance(message, Init)
    assert message.cwd == "/x"
    assert codec.encode(message) == line


def test_a_new_value_of_an_enumeration_is_kept() -> None:
    message = codec.from_cli(b'{"type":"system","subtype":"status","status":"humming"}')
    assert isinstance(message, Status)
    assert message.status is not None
    assert message.status == "humming"
    assert not message.status.known


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"assistant"}',
        b'{"type":"result","subtype":5}',
        b'{"type":"result","subtype":"success","is_error":"yes"}',
        b'{"type":"system","subtype":"init","tools":"Bash"}',
        b'{"type":"rate_limit_event","rate_limit_info":[]}',
    ],
)
def test_a_known_type_that_does_not_fit_says_why(line: bytes) -> None:
    message = codec.from_cli(line)
    assert isinstance(message, Unknown)
    assert message.error
    assert codec.encode(message) == line


def test_of_a_doubled_member_the_last_counts() -> None:
    message = codec.from_cli(b'{"type":"result","subtype":"success","result":"a","result":"b"}')
    assert isinstance(message, Result)
    assert message.result == "b"


def test_a_doubled_type_is_not_believed() -> None:
    message = codec.from_cli(b'{"type":"user","type":"assistant","message":{}}')
    assert isinstance(message, Unknown)
    assert message.error


@pytest.mark.parametrize("line", [b'{"uuid":"u"}', b'{"type":5}', b'{"type":null}', b"{}"])
def test_an_object_without_a_type_is_unknown(line: bytes) -> None:
    message = codec.from_cli(line)
    assert isinstance(message, Unknown)
    assert message.type == ""
    assert codec.encode(message) == line


@pytest.mark.parametrize(
    "line", [b"oops", b"{", b'{"type":"user"', b"[]", b"null", b"5", b'"x"', b"{}{}", b"\xff\xfe"]
)
def test_a_line_that_is_no_object_is_malformed(line: bytes) -> None:
    message = codec.from_cli(line)
    assert isinstance(message, Malformed)
    assert message.error
    assert message.size == len(line)
    assert codec.encode(message) == line


def test_not_a_number_is_malformed() -> None:
    line = b'{"type":"result","subtype":"success","total_cost_usd":NaN}'
    assert isinstance(codec.from_cli(line), Malformed)


def test_a_number_too_large_is_kept_but_not_read() -> None:
    line = b'{"type":"result","subtype":"success","total_cost_usd":1e999}'
    message = codec.from_cli(line)
    assert isinstance(message, Unknown)
    assert message.type == "result"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\uDE00 late", "\ufffd late"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d is no escape, \ud83d is", "\\ud83d is no escape, \ufffd is"),
    ],
)
def test_a_result_with_half_a_character_is_read_and_goes_on_as_it_came(
    written: bytes, text: str
) -> None:
    line = b'{"type":"result","subtype":"success","result":"' + written + b'","new":1}'
    message = codec.from_cli(line)
    assert isinstance(message, Result)
    assert message.result == text
    assert codec.encode(message) == line
    assert unknown_members(message) == ["result.new"]


@given(half_texts)
def test_text_with_halves_of_characters_is_read_with_these_replaced(text: str) -> None:
    line = json.dumps({"type": "prompt_suggestion", "suggestion": text}).encode()
    message = codec.from_cli(line)
    assert isinstance(message, PromptSuggestion)
    assert message.suggestion == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert codec.encode(message) == line


def test_a_broken_line_with_half_a_character_is_malformed_and_whole() -> None:
    line = rb'{"type":"result","result":"\ud83d"'
    message = codec.from_cli(line)
    assert isinstance(message, Malformed)
    assert codec.encode(message) == line


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_never_an_exception(depth: int) -> None:
    line = b'{"type":"assistant","message":' + b"[" * depth + b"]" * depth + b"}"
    message = codec.from_cli(line)
    assert codec.encode(message) == line
    if isinstance(message, Assistant):
        assert message.message.content == ()


def test_a_line_of_10_mb_is_read() -> None:
    text = "y" * 10_000_000
    content = [{"type": "tool_result", "tool_use_id": "t", "content": text}]
    line = json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode()
    message = codec.from_cli(line)
    assert isinstance(message, User)
    assert codec.encode(message) is line
    assert not isinstance(message.message.content, str)
    assert len(message.message.content) == 1


def test_a_broken_line_may_still_tell_whose_it_is() -> None:
    message = codec.from_cli(
        b'{"type":"system","subtype":"init","session_id":"abcdef-012345", oops'
    )
    assert isinstance(message, Malformed)
    assert message.session_id == "abcdef-012345"
    assert message.is_init


def test_a_line_over_the_limit_says_how_long_it_was() -> None:
    message = codec.from_oversized(OversizedLine(12345, b'{"session_id":"abcdef-012345"'))
    assert message.size == 12345
    assert "12345" in message.error
    assert message.session_id == "abcdef-012345"


def test_a_body_that_cannot_be_read_leaves_its_envelope() -> None:
    assistant = codec.from_cli(b'{"type":"assistant","message":5,"uuid":"u"}')
    assert isinstance(assistant, Assistant)
    assert assistant.uuid == "u"
    assert assistant.message.error
    request = codec.from_cli(b'{"type":"control_request","request_id":"r","request":5}')
    assert isinstance(request, ControlRequest)
    assert request.request_id == "r"


def test_a_keep_alive_is_known_in_both_directions() -> None:
    assert isinstance(codec.from_cli(b'{"type":"keep_alive"}'), KeepAlive)
    assert isinstance(codec.to_cli(b'{"type":"keep_alive"}'), KeepAlive)


def test_the_bodies_of_the_conversation_are_not_decoded_until_somebody_asks() -> None:
    for line in (b'{"type":"assistant","message":{}}', b'{"type":"user","message":{}}'):
        assert codec.from_cli(line).__dict__.keys() == {"raw"}
    event = codec.from_cli(b'{"type":"stream_event","event":{}}')
    assert isinstance(event, StreamEvent)
    assert event.__dict__.keys() == {"raw"}


@given(json_values | lookalikes)
def test_any_json_goes_on_as_the_very_line_it_came_from(value: object) -> None:
    line = json.dumps(value).encode()
    message = codec.from_cli(line)
    assert codec.encode(message) == line
    assert isinstance(message, Malformed) == (not isinstance(value, dict))
    assert codec.encode(codec.to_cli(line)) == line


@given(lookalikes)
def test_nothing_that_is_decoded_on_demand_ever_raises(value: dict[str, object]) -> None:
    message = codec.from_cli(json.dumps(value).encode())
    assert isinstance(unknown_members(message), list)
    match message:
        case Assistant() | User():
            assert isinstance(message.text, str)
        case StreamEvent():
            assert isinstance(message.text, str)
            assert message.event is message.event
        case Result():
            assert message.usage is message.usage
            assert isinstance(message.model_usage, dict)
        case _:
            pass


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_arbitrary_bytes_never_raise(chunks: list[bytes]) -> None:
    reader = LineReader(40)
    lines = [line for chunk in chunks for line in reader.feed(chunk)]
    last = reader.end()
    for line in lines if last is None else [*lines, last]:
        if isinstance(line, OversizedLine):
            assert codec.from_oversized(line).size == line.size
        else:
            assert codec.encode(codec.from_cli(line)) == line
            assert codec.encode(codec.to_cli(line)) == line
