"""The command line that a program gives, and what the real CLI gets."""

from __future__ import annotations

import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.program.arguments import command_line, speaks_stream_json

SDK = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
ADDED = (
    "--permission-prompt-tool",
    "stdio",
    "--replay-user-messages",
    "--include-partial-messages",
)


def test_what_is_missing_is_added_in_front_and_the_rest_is_passed_on() -> None:
    line = command_line([*SDK, "--allowedTools", "Read", "Glob"], {})
    assert line.argv == (*ADDED, *SDK, "--allowedTools", "Read", "Glob")
    assert not line.given.replay
    assert not line.given.partial
    assert not line.given.callback


def test_what_the_program_asked_for_is_known_and_not_added_twice() -> None:
    argv = [
        *SDK,
        "--permission-prompt-tool=stdio",
        "--replay-user-messages",
        "--include-partial-messages",
        "--permission-mode",
        "acceptEdits",
        "--model=opus",
    ]
    line = command_line(argv, {})
    assert line.argv == tuple(argv)
    assert line.given.replay
    assert line.given.partial
    assert line.given.callback
    assert (line.given.mode, line.given.model) == ("acceptEdits", "opus")
    assert not line.given.skip_permissions


@pytest.mark.parametrize(
    "argv", [["--dangerously-skip-permissions"], ["--permission-mode", "bypassPermissions"]]
)
def test_bypassed_permissions_are_known(argv: list[str]) -> None:
    assert command_line([*SDK, *argv], {}).given.skip_permissions


def test_words_after_two_dashes_are_no_flags() -> None:
    line = command_line([*SDK, "--", "--replay-user-messages"], {})
    assert not line.given.replay


def test_another_tool_that_answers_permission_requests_is_refused() -> None:
    with pytest.raises(UsageError, match="mcp__own__ask"):
        command_line([*SDK, "--permission-prompt-tool", "mcp__own__ask"], {})


@pytest.mark.parametrize(
    ("argv", "streams"),
    [
        (SDK, True),
        (("--input-format=stream-json", "--output-format=stream-json"), True),
        (("-p", "What is this?"), False),
        (("-p", "--output-format", "stream-json", "What?"), False),
        (("--version",), False),
        (("--", *SDK), False),
    ],
)
def test_only_two_streams_are_served(argv: tuple[str, ...], streams: bool) -> None:
    assert speaks_stream_json(argv) is streams


def test_the_agent_gets_the_environment_without_what_is_ours() -> None:
    env = {"PATH": "/bin", "QUARTERDECK_TOKEN": "qd_x", "QUARTERDECK_RUN_1": "1"}
    line = command_line(SDK, env)
    assert line.env["PATH"] == "/bin"
    assert "QUARTERDECK_TOKEN" not in line.env
    assert line.env["QUARTERDECK_RUN_1"] == "1", "the mark of an agent stays"


def test_the_hub_needs_reports_of_the_state_and_the_program_gets_them_if_it_wants() -> None:
    assert command_line(SDK, {}).env["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] == "1"
    assert not command_line(SDK, {}).given.states
    of_sdk = command_line(SDK, {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"})
    assert of_sdk.given.states
    assert "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS" not in of_sdk.env
