"""The command line that a program gives, and what the real CLI gets."""

from __future__ import annotations

import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.program.arguments import (
    command_line,
    prints_only,
    speaks_stream_json,
    with_settings,
)

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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["--x", "--", "--settings", "a"], ["--settings=NEW", "--x", "--", "--settings", "a"]),
        (["--settings", "a.json", "--x"], ["--settings", "NEW", "--x"]),
        (['--settings={"a":"="}', "--x"], ["--settings=NEW", "--x"]),
        (["--settings", "a", "--settings=b"], ["--settings", "a", "--settings=NEW"]),
        (["--settings=b", "--settings", "a"], ["--settings=b", "--settings", "NEW"]),
        (["--settings", "--settings=odd"], ["--settings", "NEW"]),
        (["--settings", ""], ["--settings", "NEW"]),
        (["--resume", "--settings", "a"], ["--resume", "--settings", "NEW"]),
        (["--resume", "id", "--settings", "a"], ["--resume", "id", "--settings", "NEW"]),
        (["--x", "--settings"], ["--settings=NEW", "--x", "--settings"]),
        ([], ["--settings=NEW"]),
    ],
)
def test_the_settings_that_count_are_replaced_and_nothing_else(
    before: list[str], after: list[str]
) -> None:
    assert with_settings(before, "NEW") == tuple(after)


def test_the_last_settings_are_the_ones_that_the_program_gave() -> None:
    given = command_line([*SDK, "--settings", "a", "--settings=b", "--managed-settings", "{}"], {})
    assert (given.given.settings, given.given.managed_settings) == ("b", "{}")
    assert command_line(SDK, {}).given.settings is None


@pytest.mark.parametrize(
    ("argv", "env"),
    [(["--bare"], {}), ([], {"CLAUDE_CODE_SIMPLE": "1"}), ([], {"CLAUDE_CODE_SIMPLE": "true"})],
)
def test_a_program_does_not_switch_hooks_off(argv: list[str], env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="the hub's rules would not hold"):
        command_line([*SDK, *argv], env)


def test_what_only_looks_as_if_hooks_were_off_is_passed_on() -> None:
    words = ["--settings", "--bare", "--", "--bare"]
    line = command_line([*SDK, *words], {"CLAUDE_CODE_SIMPLE": "0"})
    assert line.argv[-4:] == tuple(words)


@pytest.mark.parametrize(
    ("argv", "prints"),
    [
        (("-p", "What is this?"), True),
        (("--print", "--output-format", "json"), True),
        (("-p", *SDK), False),
        (("--version",), False),
        (("--", "-p"), False),
    ],
)
def test_an_agent_that_only_prints_is_known(argv: tuple[str, ...], prints: bool) -> None:
    assert prints_only(argv) is prints
