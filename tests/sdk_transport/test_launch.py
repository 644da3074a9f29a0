"""The SDK's options become the flags and the environment that the SDK itself would have used."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    InMemorySessionStore,
    PermissionResultAllow,
    ToolPermissionContext,
    create_sdk_mcp_server,
)
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from claude_agent_sdk.types import _configure_can_use_tool

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import UsageError
from quarterdeck.sdk_transport.launch import argv_for, environment_for, launch_for


async def _allow(
    name: str, arguments: dict[str, Any], context: ToolPermissionContext
) -> PermissionResultAllow:
    return PermissionResultAllow()


CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "prompt": {"system_prompt": "be brief"},
    "custom prompt": {"system_prompt": {"type": "custom", "prompt": "be brief", "snapshot": True}},
    "prompt file": {"system_prompt": {"type": "file", "path": "prompt.md"}},
    "preset": {"system_prompt": {"type": "preset", "preset": "claude_code"}},
    "preset and more": {
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": "and be brief"}
    },
    "no tools": {"tools": []},
    "some tools": {"tools": ["Bash", "Read"]},
    "all tools": {"tools": {"type": "preset", "preset": "claude_code"}},
    "rules": {"allowed_tools": ["Bash(git:*)", "Read"], "disallowed_tools": ["WebFetch"]},
    "limits": {"max_turns": 3, "max_budget_usd": 0.5, "task_budget": {"total": 1000}},
    "model": {"model": "sonnet", "fallback_model": "haiku", "betas": ["context-1m-2025-08-07"]},
    "permissions": {"permission_mode": "acceptEdits", "can_use_tool": _allow},
    "continue": {"continue_conversation": True, "fork_session": True},
    "resume": {
        "resume": "-not a flag-",
        "resume_session_at": "some-uuid",
        "resume_drops_turn": "other-uuid",
    },
    "session": {"session_id": "a3a4a5a6-0000-4000-8000-000000000001"},
    "settings": {"settings": '{"a":1}', "setting_sources": ["user", "local"]},
    "no settings": {"setting_sources": []},
    "sandbox": {"settings": '{"a": 1}', "sandbox": {"enabled": True}},
    "folders": {"add_dirs": ["one", Path("two")]},
    "mcp": {"mcp_servers": {"x": {"command": "server", "args": ["-v"]}}, "strict_mcp_config": True},
    "mcp file": {"mcp_servers": Path("mcp.json")},
    "in-process mcp": {"mcp_servers": {"calc": create_sdk_mcp_server("calc")}},
    "output": {"include_partial_messages": True, "include_hook_events": True},
    "store": {"session_store": InMemorySessionStore()},
    "plugins": {"plugins": [{"type": "local", "path": "plugin"}]},
    "skills": {"skills": ["review", "deploy"], "allowed_tools": ["Skill(review)"]},
    "all skills": {"skills": "all"},
    "thinking": {"thinking": {"type": "adaptive", "display": "summarized"}},
    "budget": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    "no thinking": {"thinking": {"type": "disabled"}, "max_thinking_tokens": 7},
    "old thinking": {"max_thinking_tokens": 100},
    "effort": {"effort": "high"},
    "format": {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
    "extra": {"extra_args": {"replay-user-messages": None, "debug-file": "log", "name": "-x"}},
}


def _flags(argv: list[str]) -> list[tuple[str, object]]:
    """The arguments in pairs, in no order; JSON by its meaning, since spaces do not matter."""
    pairs: list[tuple[str, object]] = []
    for argument in argv:
        if argument.startswith("--") and " " not in argument.partition("=")[0]:
            name, equals, value = argument.partition("=")
            pairs.append((name, _meaning(value) if equals else None))
        else:
            name, _ = pairs.pop()
            pairs.append((name, _meaning(argument)))
    return sorted(pairs, key=repr)


def _meaning(value: str) -> object:
    return json.loads(value) if value.startswith("{") else value


@pytest.mark.parametrize("case", CASES)
def test_the_flags_are_those_of_the_sdk_itself(case: str) -> None:
    options = ClaudeAgentOptions(**CASES[case], cli_path="claude")
    theirs = SubprocessCLITransport("", _configure_can_use_tool(options))._build_command()[1:]
    with ArgumentFiles() as spill:
        ours = [_with_content(each) for each in argv_for(options, spill)]
    assert _flags(ours) == _flags(theirs)


def _with_content(argument: str) -> str:
    """An argument with the text that is in a file instead: JSON is kept out of arguments."""
    name, _, value = argument.partition("=")
    return f"{name}={Path(value).read_text()}" if "quarterdeck-launch-" in value else argument


def test_every_option_of_the_sdk_is_a_case_or_known_to_be_no_flag() -> None:
    tried = {name for case in CASES.values() for name in case}
    no_flags = {
        *("agents", "hooks", "forward_subagent_text", "verbatim_prompts"),  # in `initialize`
        *("cwd", "cli_path", "env", "client_app", "enable_file_checkpointing"),  # of the process
        *("max_buffer_size", "stderr", "debug_stderr", "session_store_flush", "load_timeout_ms"),
        *("user", "permission_prompt_tool_name"),  # refused
    }
    every = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    assert every == tried | no_flags


def test_a_long_system_prompt_goes_to_a_file() -> None:
    with ArgumentFiles() as spill:
        argv = argv_for(ClaudeAgentOptions(system_prompt="x" * 200_000), spill)
        (path,) = [each.partition("=")[2] for each in argv if "--system-prompt-file=" in each]
        assert Path(path).read_text() == "x" * 200_000


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"user": "nobody"}, "user:"),
        ({"permission_prompt_tool_name": "mcp__x__ask"}, "permission_prompt_tool_name:"),
        ({"session_store": InMemorySessionStore(), "resume": "x"}, "session_store:"),
        ({"skills": "review"}, "skills: a list"),
        ({"skills": ["a, Bash"]}, "skills: 'a, Bash' is not a name"),
        ({"plugins": [{"type": "remote", "path": "x"}]}, "plugins:"),
        ({"settings": "{broken", "sandbox": {"enabled": True}}, "settings: they cannot be read"),
        ({"settings": "not-there.json", "sandbox": {}}, "settings: they cannot be read"),
    ],
)
def test_what_a_link_cannot_keep_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        launch_for(ClaudeAgentOptions(**options))


def test_the_environment_is_the_parents_with_what_the_sdk_adds(tmp_path: Path) -> None:
    options = ClaudeAgentOptions(
        env={"MINE": "1", "PATH": "/my/bin"},
        client_app="app/1",
        enable_file_checkpointing=True,
        cwd=tmp_path,
    )
    env = environment_for(options, {"PATH": "/bin", "CLAUDECODE": "1", "OTHER": "2"})
    assert env.pop("CLAUDE_AGENT_SDK_VERSION")
    assert env == {
        "PATH": "/my/bin",
        "OTHER": "2",
        "MINE": "1",
        "PWD": str(tmp_path),
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
        "CLAUDE_AGENT_SDK_CLIENT_APP": "app/1",
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true",
    }
