"""The SDK's options become the flags and the environment that the SDK itself would have used."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    CLIConnectionError,
    CLINotFoundError,
    InMemorySessionStore,
    PermissionResultAllow,
    ToolPermissionContext,
    create_sdk_mcp_server,
)
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from claude_agent_sdk.types import _configure_can_use_tool

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.sdk_transport import QuarterdeckTransport
from quarterdeck.sdk_transport.launch import SdkLaunch


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


def _argv(options: ClaudeAgentOptions, files: ArgumentFiles) -> list[str]:
    return SdkLaunch.for_options(dataclasses.replace(options, cli_path="claude")).command({}, files)


@pytest.mark.parametrize("case", CASES)
def test_the_flags_are_those_of_the_sdk_itself(case: str) -> None:
    options = ClaudeAgentOptions(**CASES[case], cli_path="claude")
    theirs = SubprocessCLITransport("", _configure_can_use_tool(options))._build_command()
    with ArgumentFiles() as spill:
        ours = [_with_content(each) for each in _argv(options, spill)]
    assert ours == theirs


def _with_content(argument: str) -> str:
    """An argument with the text that is in a file instead: JSON is kept out of arguments."""
    return Path(argument).read_text() if "quarterdeck-launch-" in argument else argument


def test_every_option_of_the_sdk_is_a_case_or_known_to_be_no_flag() -> None:
    tried = {name for case in CASES.values() for name in case}
    no_flags = {
        *("agents", "hooks", "forward_subagent_text", "verbatim_prompts"),  # in `initialize`
        *("cwd", "cli_path", "env", "client_app", "enable_file_checkpointing"),  # of the process
        *("max_buffer_size", "stderr", "debug_stderr", "session_store_flush", "load_timeout_ms"),
        *("user", "permission_prompt_tool_name"),  # of the process; set by `can_use_tool`
    }
    every = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    assert every == tried | no_flags


def test_a_long_system_prompt_goes_to_a_file() -> None:
    with ArgumentFiles() as spill:
        argv = _argv(ClaudeAgentOptions(system_prompt="x" * 200_000), spill)
        path = argv[argv.index("--system-prompt-file") + 1]
        assert Path(path).read_text() == "x" * 200_000


@pytest.mark.parametrize(
    ("options", "kind", "complaint"),
    [
        ({"session_store": InMemorySessionStore(), "resume": "x"}, UsageError, "install"),
        ({"skills": "review"}, TypeError, "must be a list"),
        ({"skills": ["a, Bash"]}, ValueError, "Invalid skill name"),
        ({"plugins": [{"type": "remote", "path": "x"}]}, ValueError, "Unsupported plugin"),
        ({"settings": "{broken", "sandbox": {}}, CLIConnectionError, "Failed to load settings"),
    ],
)
def test_what_cannot_be_right_is_refused_as_the_sdk_does(
    options: dict[str, Any], kind: type[Exception], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint):
        QuarterdeckTransport.for_options(ClaudeAgentOptions(**options))


@pytest.mark.parametrize(
    "accepted",
    [
        {"permission_prompt_tool_name": "mcp__x__ask"},
        {"fork_session": True},
        {"user": "nobody"},
        {"session_id": "not a uuid"},
        {"extra_args": {"model": "x"}, "model": "y"},
        {"skills": ["a b", "plugin:skill"]},
        {"effort": "more", "permission_mode": "someday"},
    ],
)
def test_what_the_cli_may_accept_is_not_refused(accepted: dict[str, Any]) -> None:
    QuarterdeckTransport.for_options(ClaudeAgentOptions(**accepted))


# --- the environment: compared with what the SDK gives to its process -----------------------------

ENVIRONMENTS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "plain": ({"OTHER": "2", "CLAUDECODE": "1"}, {}),
    "chosen": ({"PATH": "/bin"}, {"env": {"PATH": "/my/bin", "CLAUDECODE": "1"}}),
    "entrypoint": ({"CLAUDE_CODE_ENTRYPOINT": "x"}, {"env": {"CLAUDE_CODE_ENTRYPOINT": "mine"}}),
    "version": ({}, {"env": {"CLAUDE_AGENT_SDK_VERSION": "0"}}),
    "states off": ({"claude_code_sdk_reads_session_state": "0"}, {}),
    "states chosen": ({}, {"env": {"CLAUDE_CODE_SDK_READS_SESSION_STATE": ""}}),
    "label": ({"CLAUDE_AGENT_SDK_CLIENT_APP": "outer"}, {"client_app": "app/1"}),
    "no label": ({"CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP": "outer"}, {"client_app": ""}),
    "outer label": ({"CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP": "outer"}, {}),
    "checkpoints": ({}, {"enable_file_checkpointing": True, "cwd": "."}),
    "trace": ({"TRACEPARENT": "old", "TRACESTATE": "old"}, {}),
    "trace of the program": ({"TRACESTATE": "old"}, {"env": {"TRACEPARENT": "mine"}}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("case", ENVIRONMENTS)
async def test_the_environment_is_that_of_the_sdk(
    case: str, traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inherited, chosen = ENVIRONMENTS[case]
    seen: list[dict[str, str]] = []

    async def open_process(*_: object, env: dict[str, str], **__: object) -> None:
        seen.append(env)
        raise OSError("not started")

    def inject(carrier: dict[str, str]) -> None:
        if traced:
            carrier |= {"traceparent": "new", "baggage": "b"}

    monkeypatch.setattr("anyio.open_process", open_process)
    monkeypatch.setattr("opentelemetry.propagate.inject", inject)
    for name in ("TRACEPARENT", "TRACESTATE", "CLAUDE_AGENT_SDK_CLIENT_APP"):
        monkeypatch.delenv(name, raising=False)
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    options = ClaudeAgentOptions(cli_path="claude", **chosen)
    with pytest.raises(CLIConnectionError, match="not started"):
        await SubprocessCLITransport("", options).connect()
    assert [await SdkLaunch.for_options(options).environment(os.environ)] == seen


@pytest.mark.anyio
async def test_a_label_is_derived_as_the_sdk_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def derive(_: object) -> str:
        return "app/2"

    monkeypatch.setattr(SubprocessCLITransport, "_derive_client_app", derive)
    env = await SdkLaunch.for_options(ClaudeAgentOptions(cli_path="claude")).environment({})
    assert env["CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP"] == "app/2"


@pytest.mark.anyio
async def test_a_broken_propagator_does_not_keep_a_cli_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentelemetry.propagate.inject", lambda _: 1 / 0)
    env = await SdkLaunch.for_options(ClaudeAgentOptions(cli_path="claude")).environment({})
    assert "TRACEPARENT" not in env


def test_the_cli_is_searched_where_the_sdk_and_we_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**environ: str) -> str:
        with ArgumentFiles() as files:
            return SdkLaunch.for_options(ClaudeAgentOptions()).command(environ, files)[0]

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    monkeypatch.setattr("quarterdeck.claude.locate.MACHINE_WIDE", ())
    monkeypatch.setattr(SubprocessCLITransport, "_find_cli", _none_found)
    with pytest.raises(CLINotFoundError, match="Claude Code not found") as raised:
        found(PATH="", HOME=str(tmp_path))
    assert isinstance(raised.value, LaunchError)
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert found(QUARTERDECK_CLAUDE=str(program)) == str(program)
    assert found(PATH=str(tmp_path)) == str(program)
    monkeypatch.setattr(SubprocessCLITransport, "_find_cli", lambda _: "theirs")
    assert found(PATH=str(tmp_path)) == "theirs"


def _none_found(_: object) -> str:
    raise CLINotFoundError("Claude Code not found")
