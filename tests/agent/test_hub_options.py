"""Every option is carried by a session of the hub, or refused with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from quarterdeck import AgentDefinition, McpHttpServer, Options, UsageError
from quarterdeck.agent import hub_options
from quarterdeck.links.subprocess import StopSteps
from quarterdeck.protocol.sessions import SessionSpec

HELPER = {"description": "d", "prompt": "p"}


class Out(msgspec.Struct):
    """What a turn ends with."""

    done: bool


def spec(here: str | None = "/here", **options: Any) -> SessionSpec:
    return Options(**{"cwd": "/work", **options}).create_command(here=here).spec


def test_every_option_is_carried_or_has_a_reason_why_not() -> None:
    kinds = [hub_options.SAME, set(hub_options.ANOTHER_WAY), set(hub_options.NOT_CARRIED)]
    every = sorted(name for kind in kinds for name in kind)
    assert every == sorted(Options.__struct_fields__)
    assert set(SessionSpec.__struct_fields__) >= hub_options.SAME


SAMPLES: dict[str, tuple[Any, dict[str, Any]]] = {
    "name": ("n", {"name": "n"}),
    "title": ("t", {"name": "t"}),
    "thinking": ("adaptive", {"thinking_mode": "adaptive"}),
    "permission_mode": ("plan", {"mode": "plan"}),
    "dangerously_skip_permissions": (True, {"skip_permissions": True}),
    "system_prompt_file": ("p.md", {"system_prompt_file": "/here/p.md"}),
    "append_system_prompt_file": (Path("/a.md"), {"append_system_prompt_file": "/a.md"}),
    "debug_file": ("d.log", {"debug_file": "/here/d.log"}),
    "settings": ("s.json", {"settings": "/here/s.json"}),
    "add_dirs": (("lib",), {"add_dirs": ("/here/lib",)}),
    "plugin_dirs": (("plug", Path("/p")), {"plugin_dirs": ("/here/plug", "/p")}),
    "extra_args": ({"new": "x"}, {"extra_args": {"new": "x"}}),
    "claude": ("bin/claude", {"claude": "/here/bin/claude"}),
    "cwd": ("sub", {"directory": "/here/sub"}),
    "env": ({"A": "1"}, {"env": {"A": "1"}}),
    "file_checkpointing": (True, {}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_an_option_in_another_form_becomes_the_member_that_means_it(name: str) -> None:
    value, members = SAMPLES[name]
    assert spec(**{name: value}) == msgspec.structs.replace(spec(), **members)


def test_options_of_the_same_name_keep_their_values() -> None:
    values: dict[str, Any] = {
        "tools": ("Read",), "allowed_tools": ("Read",), "disallowed_tools": ("Write",),
        "betas": ("b",), "skills": ("s",), "setting_sources": (), "max_turns": 2, "task_budget": 3,
        "max_thinking_tokens": 4, "max_budget_usd": 0.5, "include_partial_messages": False,
    }  # fmt: skip
    switches = {"strict_mcp_config", "api_billing"} | {
        name for name in hub_options.SAME if getattr(Options(), name) is False
    }
    values |= dict.fromkeys(switches, True)
    values |= {name: name.replace("_", "-") for name in hub_options.SAME - values.keys()}
    made = spec(**values)
    for name, value in values.items():
        assert getattr(made, name) == value, name


def test_json_becomes_members_and_both_of_a_pair_are_combined() -> None:
    made = spec(
        mcp_config=('{"mcpServers":{"a":{"command":"x"}}}', "more.json"),
        mcp_servers={"b": McpHttpServer(url="http://127.0.0.1:1")},
        agents=msgspec.json.encode({"one": HELPER}).decode(),
        subagents={"two": AgentDefinition(description="d", prompt="p")},
        settings='{"x":1}',
    )
    assert list(made.mcp_servers) == ["a", "b"]
    assert made.mcp_config == ("/here/more.json",)
    assert {name: msgspec.json.decode(each) for name, each in made.subagents.items()} == {
        "one": HELPER,
        "two": HELPER,
    }
    assert made.settings == '{"x":1}'
    for given in (
        {"output_type": Out},
        {"json_schema": msgspec.json.encode(Options(output_type=Out).schema()).decode()},
    ):
        schema = spec(**given).json_schema
        assert schema is not None
        assert bytes(schema["type"]) == b'"object"'
    assert spec(permission_mode="bypassPermissions").skip_permissions


def test_conversations_are_named_by_the_command() -> None:
    made = Options(cwd="/w", resume="c", fork_session=True, resume_session_at="m")
    command = made.create_command(here=None)
    assert (command.cli_session, command.cli_fork, command.cli_at) == ("c", True, "m")
    assert Options(cwd="/w", continue_=True).create_command(here=None).cli_latest


REFUSED: dict[str, Any] = {
    "session_id": "00000000-0000-4000-8000-000000000001",
    "resume_drops_turn": "t",
    "session_persistence": False,
    "permission_prompts": False,
    "allow_dangerously_skip_permissions": True,
    "replay_user_messages": False,
    "sdk_url": "ws://127.0.0.1:1",
    "bare": True,
    "stop": StopSteps(input=9.0),
}


def test_what_cannot_be_carried_is_refused_in_a_sentence() -> None:
    assert REFUSED.keys() == hub_options.NOT_CARRIED.keys()
    for name, value in REFUSED.items():
        more = {"resume": "c"} if name == "resume_drops_turn" else {}
        with pytest.raises(UsageError, match=f"{name}: a session of the hub cannot have it: "):
            spec(**{name: value}, **more)
    for options in (
        {"claude": ("node", "cli.js")},
        {"resume": "c", "resume_session_at": "m"},
        {"mcp_config": ('{"servers":{}}',)},
        {"here": None, "cwd": "relative"},
        {"here": None, "plugin_dirs": ("relative",)},
    ):
        with pytest.raises(UsageError):
            spec(**options)
