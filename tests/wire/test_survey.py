"""What a message holds that we have no type for."""

from __future__ import annotations

import json

import pytest

from quarterdeck.wire import codec
from quarterdeck.wire.survey import unknown_members
from quarterdeck.wire.system import Init


def survey(message: object) -> list[str]:
    return unknown_members(codec.from_cli(json.dumps(message).encode()))


@pytest.mark.parametrize(
    ("message", "finding"),
    [
        ({"type": "weather"}, "weather: unknown type"),
        ({"type": "system", "subtype": "humming"}, "system/humming: unknown type"),
        ({"sky": "blue"}, "(no type): does not fit"),
        ({"type": "system", "subtype": "init", "mood": 1}, "system/init.mood"),
        (
            {"type": "system", "subtype": "init", "plugins": [{"mood": 1}]},
            "system/init.plugins.mood",
        ),
        (
            {"type": "system", "subtype": "status", "status": "humming"},
            'system/status.status: unknown value "humming"',
        ),
        ({"type": "assistant", "message": {"mood": 1}}, "assistant.message.mood"),
        (
            {"type": "assistant", "message": {"usage": {"sparks": 1}}},
            "assistant.message.usage.sparks",
        ),
        (
            {
                "type": "assistant",
                "message": {"content": [{"type": "tool_use", "id": "t", "name": "n", "mood": 1}]},
            },
            "assistant.message.content[tool_use].mood",
        ),
        (
            {"type": "assistant", "message": {"content": [{"type": "hologram", "depth": 1}]}},
            "assistant.message.content[hologram]: unknown part",
        ),
        (
            {
                "type": "stream_event",
                "event": {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": "x", "pitch": 1},
                },
            },
            "stream_event.event[content_block_delta].delta[text_delta].pitch",
        ),
        (
            {"type": "stream_event", "event": {"type": "flip"}},
            "stream_event.event[flip]: unknown part",
        ),
        (
            {"type": "result", "subtype": "success", "modelUsage": {"m": {"sparks": 1}}},
            "result.modelUsage.*.sparks",
        ),
        (
            {"type": "control_request", "request_id": "r", "request": {"subtype": "sing"}},
            "control_request.request[sing]: unknown part",
        ),
    ],
)
def test_what_is_new_is_found_wherever_it_is(message: object, finding: str) -> None:
    (found,) = survey(message)
    assert found.startswith(finding)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"type": "assistant", "message": 5}, "assistant.message"),
        ({"type": "result", "subtype": "success", "usage": [1]}, "result.usage"),
        ({"type": "result", "subtype": "success", "modelUsage": {"m": 5}}, "result.modelUsage"),
        ({"type": "result", "subtype": "success", "is_error": "yes"}, "result/success"),
        (
            {"type": "user", "message": {"content": [{"type": "text", "text": 5}]}},
            "user.message.content[text]",
        ),
    ],
)
def test_what_does_not_fit_is_found_with_the_reason(message: object, path: str) -> None:
    (found,) = survey(message)
    assert found.startswith(f"{path}: does not fit (")


def test_what_is_known_gives_nothing() -> None:
    content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "n"}]
    assert survey({"type": "assistant", "message": {"content": content}, "uuid": "u"}) == []


def test_members_that_are_left_alone_on_purpose_are_no_findings() -> None:
    assert survey({"type": "result", "subtype": "success", "process_turn_index": 1}) == []


def test_what_is_raw_is_not_searched() -> None:
    tool = {"type": "tool_use", "id": "t", "name": "n", "input": {"any": "thing"}}
    assert survey({"type": "assistant", "message": {"content": [tool]}}) == []


def test_the_same_finding_comes_once() -> None:
    content = [{"type": "text", "text": "x", "mood": number} for number in range(3)]
    assert survey({"type": "user", "message": {"content": content}}) == [
        "user.message.content[text].mood"
    ]


def test_several_findings_come_in_the_order_of_the_line() -> None:
    found = survey({"type": "user", "b": 1, "message": {"c": 1}, "a": 1})
    assert found == ["user.b", "user.message.c", "user.a"]


def test_a_malformed_line_is_a_finding() -> None:
    (found,) = unknown_members(codec.from_cli(b'{"type":'))
    assert found.startswith("malformed line: ")


def test_a_message_made_here_has_no_line_to_survey() -> None:
    assert unknown_members(Init()) == []
