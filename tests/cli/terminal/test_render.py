"""How messages look, one by one."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.cli.terminal import render
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.messages import Result


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def notice(**message: object) -> str | None:
    found = render.notice(from_cli(msgspec.json.encode(message)))
    return None if found is None else found.plain


def system(subtype: str, **fields: object) -> str | None:
    return notice(type="system", subtype=subtype, **fields)


def result(**fields: object) -> Result:
    line = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2}
    found = from_cli(msgspec.json.encode(line | {"duration_ms": 1234} | fields))
    assert isinstance(found, Result)
    return found


@pytest.mark.parametrize(
    ("name", "given_input", "line"),
    [
        ("Bash", {"command": "ls -la", "description": "look"}, "• command      ls -la  # look"),
        ("Edit", {"file_path": "/a/b.py"}, "• file change  /a/b.py"),
        ("Read", {"file_path": "/a/b.py"}, "• tool         Read /a/b.py"),
        ("Grep", {"pattern": "TODO"}, "• tool         Grep TODO"),
        ("WebSearch", {"query": "cats"}, "• web search   cats"),
        ("TodoWrite", {"todos": []}, "• note         update todos"),
        (
            "Task",
            {"description": "find it", "subagent_type": "Explore"},
            "• tool         Task  # Explore · find it",
        ),
        ("mcp__calc__add", {"a": 1}, "• tool         mcp__calc__add"),
        ("Bash", {"command": "a\nb\x1b[31m"}, "• command      a b\ufffd[31m"),
        ("Bash", [], "• command      Bash"),
    ],
)
def test_a_tool_call_is_one_line_with_kind_and_title(
    name: str, given_input: object, line: str
) -> None:
    assert render.tool_call(name, raw(given_input)).plain == line


def test_of_a_long_output_only_the_head_is_shown() -> None:
    content = raw("\n".join(f"line {n}" for n in range(10)))
    lines = render.tool_result(ToolResultBlock(tool_use_id="t", content_json=content))
    assert [line.plain for line in lines] == [
        "  └ line 0",
        "    line 1",
        "    line 2",
        "    … 7 more lines",
    ]


def test_an_error_of_a_tool_is_shown_at_more_length_and_without_tags() -> None:
    text = "<tool_use_error>" + "\n".join("abcdefg") + "</tool_use_error>"
    block = ToolResultBlock(tool_use_id="t", content_json=raw(text), is_error=True)
    lines = [line.plain for line in render.tool_result(block)]
    assert lines[0] == "  └ a"
    assert lines[-1] == "    g"


def test_an_output_without_text_is_named_or_left_out() -> None:
    image = [{"type": "image", "source": {"type": "base64", "data": "", "media_type": "image/png"}}]
    shown = render.tool_result(ToolResultBlock(tool_use_id="t", content_json=raw(image)))
    assert [line.plain for line in shown] == ["  └ (image)"]
    assert render.tool_result(ToolResultBlock(tool_use_id="t", content_json=raw(""))) == []


def test_a_retry_says_why_when_and_how_often() -> None:
    said = system(
        "api_retry", attempt=2, max_retries=10, retry_delay_ms=1500, error_status=529, error="x"
    )
    assert said == "~ the API failed (529 x); retrying in 1.5 s (2 of 10)"


def test_a_limit_is_told_only_when_it_is_near() -> None:
    def limit(**info: object) -> str | None:
        return notice(type="rate_limit_event", rate_limit_info=info)

    assert limit(status="allowed", utilization=0.2) is None
    near = limit(status="allowed_warning", rateLimitType="five_hour", utilization=0.9)
    assert near == "~ the five hour limit is near at 90%"
    reached = limit(status="rejected", rateLimitType="seven_day", resetsAt=1_800_000_000)
    assert reached is not None
    assert reached.startswith("~ the seven day limit is reached; it resets ")
    assert limit(status="rejected", resetsAt=1e300) == "~ the usage limit is reached"


def test_a_compaction_says_what_it_saved() -> None:
    meta = {"trigger": "auto", "pre_tokens": 150_000, "post_tokens": 900}
    assert system("status", status="compacting") == "~ compacting the conversation …"
    assert system("compact_boundary", compact_metadata=meta) == (
        "~ compacted (auto): from 150.0k tokens to 900 tokens"
    )


def test_tasks_are_told_of_when_they_are_in_the_background_or_have_ended() -> None:
    assert system("task_started", task_id="t", task_type="local_bash", description="ls") is None
    started = system(
        "task_started",
        task_id="t",
        task_type="local_agent",
        description="look",
        is_backgrounded=True,
    )
    assert started == "~ subagent started in the background: look"
    ended = system("task_notification", task_id="t", status="failed", summary="no\x1b[2J luck")
    assert ended == "~ task failed: no\ufffd[2J luck"


def test_what_cannot_be_read_is_said_and_what_is_new_is_passed_over() -> None:
    broken = render.notice(from_cli(b"{broken"))
    assert broken is not None
    assert broken.plain.startswith("~ a line of the CLI could not be read")
    assert notice(type="something_new", text="x") is None


def test_a_turn_ends_in_one_line() -> None:
    assert render.outcome(result(), 0.0123).plain == "done · $0.0123 · 2 turns · 1.2 s"
    denied = result(permission_denials=[{"tool_name": "Bash"}], num_turns=1, duration_ms=125_000)
    assert render.outcome(denied, 2).plain == "done · $2.00 · 1 turn · 2 min 5 s · 1 call denied"


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"subtype": "error_max_turns"}, "failed (error max turns)"),
        ({"is_error": True, "terminal_reason": "api_error"}, "failed (api error)"),
        ({"is_error": True}, "failed (api error)"),
        ({"subtype": "error_during_execution", "errors": []}, "interrupted"),
        ({"subtype": "error_during_execution", "errors": ["boom"]}, "failed"),
        (
            {"subtype": "error_during_execution", "terminal_reason": "aborted_tools"},
            "interrupted",
        ),
    ],
)
def test_a_failure_says_which(fields: dict[str, object], begins: str) -> None:
    assert render.outcome(result(**fields), 0).plain.startswith(begins)


def test_only_the_mark_of_a_line_is_dimmed() -> None:
    call = render.tool_call("Bash", raw({"command": "ls"}))
    ended = render.outcome(result(), 0)
    # A style of the whole text would lie under every part of it.
    assert (call.style, ended.style) == ("", "")
