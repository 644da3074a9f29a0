"""The messages of a CLI, but for `system` and control."""

from __future__ import annotations

import json
from typing import Any, TypeVar, assert_never, get_args

import pytest

from quarterdeck.wire import codec
from quarterdeck.wire.base import Malformed, Message, Unknown
from quarterdeck.wire.content import TextBlock, ToolResultBlock
from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse
from quarterdeck.wire.envelope import System
from quarterdeck.wire.info import OriginKind
from quarterdeck.wire.internal import (
    AutocompactState,
    CommandLifecycle,
    LifecycleState,
    TranscriptMirror,
)
from quarterdeck.wire.messages import (
    FROM_CLI,
    ActiveGoal,
    Assistant,
    AssistantError,
    AuthStatus,
    ConversationReset,
    FromCli,
    PromptSuggestion,
    RateLimitEvent,
    ResetTrigger,
    Result,
    StreamEvent,
    StreamlinedText,
    StreamlinedToolUseSummary,
    SystemHeader,
    ToolProgress,
    ToolUseSummary,
    User,
)
from quarterdeck.wire.outbound import KeepAlive
from quarterdeck.wire.reports import RateLimitStatus, ResultSubtype, TerminalReason
from quarterdeck.wire.system import SYSTEM, Init

M = TypeVar("M", bound=Message)


def read(kind: type[M], **members: Any) -> M:
    message = codec.from_cli(json.dumps(members).encode())
    assert isinstance(message, kind), message
    return message


def result(**members: Any) -> Result:
    return read(Result, **{"type": "result", "subtype": "success", "is_error": False, **members})


def test_an_assistant_message_gives_its_text() -> None:
    content = [{"type": "text", "text": "hello"}]
    message = read(Assistant, type="assistant", message={"id": "m", "content": content}, uuid="u")
    assert message.message.content == (TextBlock(text="hello"),)
    assert message.blocks == message.message.content
    assert message.text == "hello"
    assert message.parent_tool_use_id is None


def test_an_api_error_in_place_of_an_answer_is_named() -> None:
    message = read(
        Assistant, type="assistant", message={"model": "<synthetic>"}, error="rate_limit"
    )
    assert message.error is AssistantError.RATE_LIMIT
    assert message.message.synthetic


def test_the_word_unknown_of_the_cli_is_a_known_value() -> None:
    message = read(Assistant, type="assistant", message={}, error="unknown")
    assert message.error is AssistantError.NOT_KNOWN
    assert message.error.known


def test_a_tools_result_comes_in_a_user_message_with_its_raw_output() -> None:
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "out", "is_error": True}]
    message = read(
        User, type="user", message={"role": "user", "content": content}, tool_use_result={"x": 1}
    )
    (block,) = message.blocks
    assert isinstance(block, ToolResultBlock)
    assert block.is_error
    assert json.loads(bytes(message.tool_use_result)) == {"x": 1}
    assert message.text == ""


def test_the_echo_of_a_prompt_says_that_it_is_one() -> None:
    message = read(
        User,
        type="user",
        message={"role": "user", "content": "hi"},
        isReplay=True,
        uuid="p",
        origin={"kind": "human"},
    )
    assert message.is_replay
    assert not message.is_synthetic
    assert message.text == "hi"
    assert message.blocks == (TextBlock(text="hi"),)
    assert message.origin is not None
    assert message.origin.kind is OriginKind.HUMAN


def test_an_origin_of_a_new_kind_keeps_its_word() -> None:
    message = result(origin={"kind": "carrier-pigeon", "from": "loft"})
    assert message.origin is not None
    assert message.origin.kind == "carrier-pigeon"
    assert message.origin.from_ == "loft"


def test_an_origin_of_another_shape_keeps_the_reason() -> None:
    message = result(origin=["human"])
    assert message.origin is not None
    assert message.origin.error
    assert result().origin is None


@pytest.mark.parametrize(
    ("members", "failed", "outcome"),
    [
        ({}, False, "completed"),
        ({"terminal_reason": "completed"}, False, "completed"),
        # An API error, old and new.
        ({"is_error": True, "result": "API Error"}, True, "api_error"),
        ({"is_error": True, "terminal_reason": "api_error"}, True, "api_error"),
        # An interrupt: up to 2.1.62 without is_error.
        ({"subtype": "error_during_execution"}, True, "error_during_execution"),
        (
            {
                "subtype": "error_during_execution",
                "is_error": True,
                "terminal_reason": "aborted_tools",
            },
            True,
            "aborted_tools",
        ),
        # 2.1.92 to 2.1.200: an API error that is «completed».
        ({"is_error": True, "terminal_reason": "completed"}, True, "api_error"),
        # An interrupt after a Stop hook made the model go on (2.1.92 and newer).
        ({"terminal_reason": "aborted_streaming"}, True, "aborted_streaming"),
        ({"subtype": "error_max_turns"}, True, "error_max_turns"),
        ({"subtype": "error_brand_new"}, True, "error_brand_new"),
    ],
)
def test_whether_a_turn_failed_needs_two_members(
    members: dict[str, Any], failed: bool, outcome: str
) -> None:
    message = result(**members)
    assert message.failed is failed
    assert message.outcome == outcome
    assert bool(message.error_text) is failed


def test_the_text_of_a_failure_is_the_best_there_is() -> None:
    failed = {"subtype": "error_during_execution"}
    assert result(**failed, errors=["one", "two"]).error_text == "one\ntwo"
    assert result(is_error=True, result="API Error: 529").error_text == "API Error: 529"
    assert result(subtype="error_max_turns").error_text == "error_max_turns"


DIAGNOSTIC = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"


@pytest.mark.parametrize(
    ("members", "interrupted", "text"),
    [
        ({"errors": []}, True, "the turn was interrupted"),
        ({"errors": [DIAGNOSTIC]}, True, "the turn was interrupted"),
        (
            {"errors": [DIAGNOSTIC], "terminal_reason": "aborted_tools"},
            True,
            "the turn was interrupted",
        ),
        ({"errors": [DIAGNOSTIC, "it broke"]}, False, "it broke"),
        ({"errors": [DIAGNOSTIC], "terminal_reason": "model_error"}, False, "model_error"),
    ],
)
def test_an_interrupt_is_told_in_plain_words(
    members: dict[str, Any], interrupted: bool, text: str
) -> None:
    message = result(subtype="error_during_execution", **members)
    assert message.interrupted is interrupted
    assert message.error_text == text
    assert message.errors == tuple(members["errors"])


def test_a_result_has_usage_by_turn_and_by_model() -> None:
    message = result(
        usage={"input_tokens": 3, "output_tokens": 4},
        modelUsage={"claude-x": {"inputTokens": 30, "costUSD": 0.5}},
        total_cost_usd=0.5,
    )
    assert message.usage.output_tokens == 4
    assert message.model_usage["claude-x"].input_tokens == 30
    assert message.model_usage["claude-x"].cost_usd == 0.5


@pytest.mark.parametrize("member", ["usage", "modelUsage", "subagent_stats", "deferred_tool_use"])
def test_a_turn_ends_even_if_its_numbers_cannot_be_read(member: str) -> None:
    message = result(**{member: [{"what": "ever"}]}, result="done")
    assert message.result == "done"
    assert not message.failed
    assert message.usage.context_tokens == 0
    assert message.model_usage == {}


def test_what_was_denied_is_listed_with_the_raw_input() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "ls"}}
    (found,) = result(permission_denials=[denial]).permission_denials
    assert found.tool_name == "Bash"
    assert bytes(found.tool_input) == b'{"command": "ls"}'


def test_a_result_tells_the_prompts_that_it_took_in() -> None:
    assert result().prompts == ()
    assert result(user_message_uuid="a").prompts == ("a",)
    assert result(user_message_uuid="a", user_message_uuids=["a", "b"]).prompts == ("a", "b")


def test_a_deferred_tool_call_is_in_the_result() -> None:
    call = result(deferred_tool_use={"id": "t", "name": "Bash", "input": {}}).deferred_tool_use
    assert call is not None
    assert call.name == "Bash"
    assert result().deferred_tool_use is None


def test_the_known_ways_to_end_have_names() -> None:
    message = result(subtype="error_max_budget_usd", terminal_reason="budget_exhausted")
    assert message.subtype is ResultSubtype.ERROR_MAX_BUDGET_USD
    assert message.terminal_reason is TerminalReason.BUDGET_EXHAUSTED


def test_rate_limits_are_read_with_their_windows() -> None:
    info = {
        "status": "allowed_warning",
        "resetsAt": 1700000000,
        "rateLimitType": "five_hour",
        "utilization": 0.91,
        "isUsingOverage": False,
        "unifiedWindows": {"five_hour": {"utilization": 0.91, "resetsAt": 1700000000}},
    }
    found = read(RateLimitEvent, type="rate_limit_event", rate_limit_info=info).rate_limit_info
    assert found.status is RateLimitStatus.ALLOWED_WARNING
    assert found.utilization == 0.91
    assert found.unified_windows["five_hour"].resets_at == 1700000000


def test_a_reset_tells_the_new_session() -> None:
    message = read(
        ConversationReset, type="conversation_reset", new_conversation_id="n", trigger="clear"
    )
    assert message.new_conversation_id == "n"
    assert message.trigger is ResetTrigger.CLEAR


def test_a_prompts_way_is_told() -> None:
    message = read(CommandLifecycle, type="command_lifecycle", command_uuid="p", state="started")
    assert message.state is LifecycleState.STARTED
    assert message.command_uuid == "p"


def test_a_goal_may_be_taken_away() -> None:
    goal = {"condition": "green", "iterations": 1, "set_at": 1, "tokens_at_start": 2}
    message = read(ActiveGoal, type="active_goal", value=goal)
    assert message.value is not None
    assert message.value.condition == "green"
    assert read(ActiveGoal, type="active_goal", value=None).value is None


def test_the_answer_to_context_has_numbers() -> None:
    usage = {
        "model": "m",
        "total_tokens": 5,
        "percentage": 3,
        "categories": [{"name": "Skills", "tokens": 5, "kind": "used"}],
    }
    message = read(Assistant, type="assistant", message={}, context_usage=usage)
    assert message.context_usage is not None
    assert message.context_usage.categories[0].tokens == 5
    assert message.usage_report is None


def test_lines_mirrored_from_a_session_file_stay_raw() -> None:
    message = read(TranscriptMirror, type="transcript_mirror", filePath="/f", entries=[{"a": 1}])
    assert message.file_path == "/f"
    assert [bytes(entry) for entry in message.entries] == [b'{"a": 1}']


def what_it_is(message: FromCli) -> str:
    """A front's `match`: mypy proves that it leaves nothing out."""
    match message:
        case Assistant() | User() | StreamEvent() | StreamlinedText():
            return "said"
        case Result():
            return "ended"
        case Init():
            return "began"
        case System():
            return "told"
        case ControlRequest() | ControlResponse() | ControlCancel():
            return "asked"
        case ToolProgress() | ToolUseSummary() | StreamlinedToolUseSummary():
            return "worked"
        case AuthStatus() | RateLimitEvent() | PromptSuggestion() | ConversationReset():
            return "noted"
        case ActiveGoal() | CommandLifecycle() | TranscriptMirror() | AutocompactState():
            return "noted"
        case KeepAlive():
            return "nothing"
        case Unknown() | Malformed():
            return "unread"
        case _:
            assert_never(message)


def test_a_match_over_all_messages_can_be_complete() -> None:
    assert what_it_is(result()) == "ended"
    assert what_it_is(Init()) == "began"
    assert what_it_is(Unknown(type="x")) == "unread"


def test_the_union_has_every_message_that_a_line_can_become() -> None:
    known = set(get_args(FromCli))
    assert set(SYSTEM.values()) <= known
    assert set(get_args(FROM_CLI)) - {SystemHeader} <= known
    assert {Unknown, Malformed} <= known
