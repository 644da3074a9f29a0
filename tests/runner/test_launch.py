"""What a session's specification means to the CLI."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.claude.launch import to_argv
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.launch import launch_of

PLAIN = SessionSpec(directory="/")


def flags(origin: Origin | None = None, **spec: object) -> set[str]:
    launch = launch_of(msgspec.structs.replace(PLAIN, **spec), origin or Origin())
    return set(to_argv(launch)) - set(to_argv(launch_of(PLAIN, Origin())))


def test_what_is_left_out_is_left_to_the_cli() -> None:
    argv = to_argv(launch_of(PLAIN, Origin()))
    assert argv[:5] == [
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
    ]
    assert not [
        flag for flag in argv if flag.startswith(("--model", "--resume", "--permission-mode"))
    ]


def test_every_option_of_a_session_becomes_a_flag() -> None:
    assert flags(
        model="opus",
        mode="plan",
        effort="high",
        system_prompt="S",
        append_system_prompt="A",
        allowed_tools=("Read", "Bash(git:*)"),
        disallowed_tools=("Write",),
        tools=(),
        add_dirs=("/a", "/b"),
        settings='{"x":1}',
        max_turns=3,
        max_budget_usd=0.5,
        mcp_servers={"one": msgspec.Raw(b'{"command":"x"}')},
    ) == {
        "--model=opus",
        "--permission-mode=plan",
        "--effort=high",
        "--system-prompt=S",
        "--append-system-prompt=A",
        "--allowedTools=Read,Bash(git:*)",
        "--disallowedTools=Write",
        "--tools=",
        "--add-dir=/a",
        "--add-dir=/b",
        '--settings={"x":1}',
        "--max-turns=3",
        "--max-budget-usd=0.5",
        '--mcp-config={"mcpServers":{"one":{"command":"x"}}}',
    }


def test_every_other_option_that_a_machine_can_carry_becomes_a_flag() -> None:
    helper = Raw(b'{"description":"d","prompt":"p"}')
    assert flags(
        model="opus",
        fallback_model="sonnet",
        thinking_mode="adaptive",
        thinking_display="omitted",
        task_budget=5,
        betas=("a", "b"),
        system_prompt_file="/s.md",
        append_system_prompt_file="/a.md",
        exclude_dynamic_system_prompt_sections=True,
        plan_mode_instructions="Plan.",
        setting_sources=("user", "local"),
        mcp_servers={"one": Raw(b'{"command":"x"}')},
        mcp_config=("/m.json",),
        strict_mcp_config=True,
        plugin_dirs=("/p", "/q"),
        agent="helper",
        subagents={"helper": helper},
        disable_slash_commands=True,
        safe_mode=True,
        restricted=True,
        include_hook_events=True,
        forward_subagent_text=True,
        prompt_suggestions=True,
        session_mirror=True,
        json_schema={"type": Raw(b'"object"')},
        debug_file="/d.log",
        extra_args={"new-switch": None, "new-flag": "--x"},
    ) == {
        "--model=opus",
        "--fallback-model=sonnet",
        "--thinking=adaptive",
        "--thinking-display=omitted",
        "--task-budget=5",
        "--betas=a,b",
        "--system-prompt-file=/s.md",
        "--append-system-prompt-file=/a.md",
        "--exclude-dynamic-system-prompt-sections",
        "--plan-mode-instructions=Plan.",
        "--setting-sources=user,local",
        "--mcp-config=/m.json",
        '--mcp-config={"mcpServers":{"one":{"command":"x"}}}',
        "--strict-mcp-config",
        "--plugin-dir=/p",
        "--plugin-dir=/q",
        "--agent=helper",
        '--agents={"helper":{"description":"d","prompt":"p"}}',
        "--disable-slash-commands",
        "--safe-mode",
        "--restricted",
        "--include-hook-events",
        "--forward-subagent-text",
        "--prompt-suggestions",
        "--session-mirror",
        '--json-schema={"type":"object"}',
        "--debug-file=/d.log",
        "--new-switch",
        "--new-flag=--x",
    }
    assert flags(setting_sources=()) == {"--setting-sources="}
    assert "--include-partial-messages" not in to_argv(
        launch_of(msgspec.structs.replace(PLAIN, include_partial_messages=False), Origin())
    )


def test_what_people_switched_while_it_ran_does_not_prevent_the_next_start() -> None:
    assert flags(model="opus", fallback_model="opus") == {"--model=opus"}
    assert flags(thinking_mode="disabled", max_thinking_tokens=7) == {"--max-thinking-tokens=7"}


def test_a_subagent_bypasses_permissions_only_where_its_session_may() -> None:
    bypassing = Raw(b'{"description":"d","prompt":"p","permissionMode":"bypassPermissions"}')
    (given,) = flags(subagents={"a": bypassing})
    assert "bypass" not in given
    assert any(
        "bypass" in flag for flag in flags(subagents={"a": bypassing}, skip_permissions=True)
    )


def test_an_origin_is_resumed_forked_or_forked_at_a_message() -> None:
    assert flags(Origin(cli_session="x")) == {"--resume=x"}
    assert flags(Origin(cli_session="x", fork=True)) == {"--resume=x", "--fork-session"}
    assert flags(Origin(cli_session="x", at="m")) == {
        "--resume=x",
        "--fork-session",
        "--resume-session-at=m",
    }


def test_a_fork_of_nothing_is_refused() -> None:
    for origin in (Origin(fork=True), Origin(at="m")):
        with pytest.raises(UsageError, match="origin"):
            flags(origin)


def test_permissions_are_skipped_only_when_a_person_said_so() -> None:
    with pytest.raises(UsageError, match="skip_permissions"):
        flags(mode="bypassPermissions")
    assert "--dangerously-skip-permissions" in flags(skip_permissions=True)
    assert "--permission-mode=bypassPermissions" in flags(
        mode="bypassPermissions", skip_permissions=True
    )


def test_a_mode_beside_the_leave_to_skip_permissions_is_the_one_that_it_starts_in() -> None:
    for mode in ("default", "acceptEdits", "plan"):
        assert flags(mode=mode, skip_permissions=True) >= {
            f"--permission-mode={mode}",
            "--allow-dangerously-skip-permissions",
        }
        assert "--dangerously-skip-permissions" not in flags(mode=mode, skip_permissions=True)
