"""Every option is carried by a session of the hub, or refused with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from quarterdeck import AgentDefinition, McpHttpServer, Options, UsageError
from quarterdeck.agent.typed_settings import CliSandbox, LocalPlugin
from quarterdeck.domain.launch_options import CARRIED, OPTIONS, Kind, Option
from quarterdeck.links.subprocess import StopSteps
from quarterdeck.protocol.sessions import SessionSpec

HELPER = {"description": "d", "prompt": "p"}


class Out(msgspec.Struct):
    """What a turn ends with."""

    done: bool


def spec(here: str | None = "/here", **options: Any) -> SessionSpec:
    return Options(**{"cwd": "/work", **options}).create_command(here=here).spec


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


@pytest.mark.parametrize("name", SAMPLES)
def test_an_option_in_another_form_becomes_the_member_that_means_it(name: str) -> None:
    value, members = SAMPLES[name]
    assert spec(**{name: value}) == msgspec.structs.replace(spec(), **members)


OTHER_SAMPLES: dict[str, Any] = {
    "setting_sources": ("user",),
    "mcp_config": ("/m.json",),
    "mcp_servers": {"a": McpHttpServer(url="http://127.0.0.1:1")},
    "agents": msgspec.json.encode({"one": HELPER}).decode(),
    "subagents": {"two": AgentDefinition(description="d", prompt="p")},
    "json_schema": '{"type":"object"}',
    "output_type": Out,
    "sandbox": CliSandbox(enabled=True),
    "plugins": (LocalPlugin("/p"),),
    "api_billing": True,
    "skills": ("s",),
    "agent_progress_summaries": True,
}
COMPANIONS: dict[str, dict[str, Any]] = {
    "fork_session": {"resume": "c"},
    "resume_session_at": {"resume": "c", "fork_session": True},
    "resume_drops_turn": {"resume": "c"},
}


def sample(option: Option) -> Any:
    """A value that is not the default."""
    match option.kind:
        case Kind.SWITCH | Kind.SWITCH_OFF:
            return not getattr(Options(), option.name)
        case Kind.NUMBER:
            return 7
        case Kind.COMMAS | Kind.COMMAS_OR_NONE:
            return ("a", "b")
        case Kind.EACH:
            return ("/a",)
        case Kind.VALUE:
            return option.choices[0] if option.choices else "/a" if option.path else "a-b"


EVERY = (
    {option.name: sample(option) for option in OPTIONS}
    | {name: value for name, (value, _) in SAMPLES.items()}
    | OTHER_SAMPLES
    | REFUSED
)


@pytest.mark.parametrize("name", sorted(Options.__struct_fields__))
def test_every_option_changes_the_session_or_is_refused_with_a_reason(name: str) -> None:
    plain = Options(cwd="/work", **COMPANIONS.get(name, {}))
    given = msgspec.structs.replace(plain, **{name: EVERY[name]})
    if name in REFUSED:
        with pytest.raises(UsageError, match=f"{name}: a session of the hub cannot have it: "):
            given.create_command(here="/here")
    elif name != "file_checkpointing":  # sessions of the hub always have it
        assert given.create_command(here="/here") != plain.create_command(here="/here")


@pytest.mark.parametrize(
    "option",
    [o for m, o in CARRIED if m == o.name and o.name not in {*SAMPLES, *OTHER_SAMPLES}],
    ids=lambda option: option.name,
)
def test_an_option_of_the_same_name_keeps_its_value(option: Option) -> None:
    value = sample(option)
    assert getattr(spec(**{option.name: value}), option.name) == value


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


def test_a_value_that_a_session_cannot_have_is_refused() -> None:
    for options in (
        {"claude": ("node", "cli.js")},
        {"resume": "c", "resume_session_at": "m"},
        {"mcp_config": ('{"servers":{}}',)},
        {"here": None, "cwd": "relative"},
        {"here": None, "plugin_dirs": ("relative",)},
    ):
        with pytest.raises(UsageError):
            spec(**options)
