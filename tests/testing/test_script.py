"""What the scripted model is told: steps, replies, and their JSON."""

from __future__ import annotations

import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.testing.script import (
    PLAY,
    ApiError,
    CutConnection,
    Gate,
    MidStreamError,
    Pause,
    ResponseHeaders,
    Stop,
    Text,
    Thinking,
    ToolUse,
    parse_script,
    play,
    reply,
)

EVERY_STEP = reply(
    ApiError(529, "Overloaded", headers={"retry-after": "1"}, times=2, kind="odd_error"),
    Text("plain"),
    Text("slow ", times=3, delay=0.5),
    Thinking("hm", signature="c2ln"),
    ToolUse("Bash", {"command": "ls"}, id="toolu_x"),
    ToolUse("Read"),
    Pause(0.5),
    Gate("here"),
    MidStreamError("api_error", "broken"),
    CutConnection(),
    ResponseHeaders({"x-limit": "1"}),
    Stop("max_tokens"),
)


def test_every_step_survives_the_way_through_json() -> None:
    prompt = play(EVERY_STEP, "end", Gate(), MidStreamError())

    script = parse_script(prompt.removeprefix(PLAY))

    assert script == (EVERY_STEP, reply("end"), reply(Gate()), reply(MidStreamError()))


def test_a_reply_may_be_written_as_one_step_and_text_may_follow_the_script() -> None:
    assert parse_script('["a", {"tool": "Bash"}] and more') == (reply("a"), reply(ToolUse("Bash")))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not json", "not JSON"),
        ("{}", "not a list"),
        ('[["fine"], [{"nonsense": 1}]]', "reply 1"),
        ('[[{"tool": "Bash", "inptu": {}}]]', "inptu"),
        ("[[7]]", "invalid step: 7"),
        ('[["said", {"status": 500}]]', "first step"),
    ],
)
def test_a_script_that_is_wrong_is_refused_with_the_place_of_the_fault(
    text: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_script(text)


def test_the_stop_reason_follows_from_the_steps_unless_it_is_given() -> None:
    assert reply("a").stop_reason == "end_turn"
    assert reply("a", ToolUse("Bash")).stop_reason == "tool_use"
    assert reply("a", ToolUse("Bash"), Stop("refusal")).stop_reason == "refusal"


def test_an_error_has_the_name_that_the_api_gives_to_its_status() -> None:
    assert ApiError(529).error_type == "overloaded_error"
    assert ApiError(500).error_type == "api_error"
    assert ApiError(400, kind="billing_error").error_type == "billing_error"
