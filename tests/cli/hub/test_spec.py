"""From the options of `new` to members of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quarterdeck.cli.commands.base import given_options
from quarterdeck.cli.commands.launch_options import LaunchOptions, NewOptions
from quarterdeck.cli.hub import spec as values
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import Kind, Offer, Option
from quarterdeck.protocol.sessions import SessionSpec


def members(*, here: bool = True, **options: Any) -> dict[str, Any]:
    return values.launch_members(given_options(NewOptions(**options)), here=here)


def test_options_of_new_become_members_of_the_spec(tmp_path: Path) -> None:
    file = tmp_path / "agents.json"
    file.write_text('{"scout": {"description": "d", "prompt": "p"}}')
    made = SessionSpec(
        directory="/",
        **members(
            fallback_model="haiku",
            json_schema='{"type": "object"}',
            agent="scout",
            subagents=str(file),
            plugin_dirs=[str(tmp_path)],
            add_dirs=["."],
            tools=["Read", "Bash"],
            setting_sources="user, project",
            strict_mcp_config=True,
            include_hook_events=True,
        ),
    )
    assert (made.fallback_model, made.agent) == ("haiku", "scout")
    assert made.json_schema is not None
    assert list(made.subagents) == ["scout"]
    assert made.plugin_dirs == (str(tmp_path),)
    assert made.add_dirs == (str(Path.cwd()),)
    assert made.tools == ("Read", "Bash")
    assert made.setting_sources == ("user", "project")
    assert made.strict_mcp_config
    assert made.include_hook_events
    assert values.cli_flags(["new", "--other=a=b"]) == {"new": None, "other": "a=b"}


def test_what_is_not_given_is_left_to_the_spec() -> None:
    assert SessionSpec(directory="/", **members()) == SessionSpec(directory="/")
    assert members(setting_sources="")["setting_sources"] == ()
    assert "tools" not in members(tools=[])


def test_options_that_commands_share_become_members_of_the_spec(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"a": 1}')
    launch = LaunchOptions(
        mode="plan",
        allowed_tools=["Read"],
        skip_permissions=True,
        mcp_config=['{"mcpServers": {"one": {"command": "x"}}}'],
        settings=str(file),
        system_prompt="",
    )
    made = SessionSpec(directory="/", **values.launch_members(given_options(launch), here=True))
    assert (made.mode, made.allowed_tools, made.skip_permissions) == ("plan", ("Read",), True)
    assert list(made.mcp_servers) == ["one"]
    assert made.mcp_config == ()
    assert made.settings == '{"a": 1}'
    assert made.system_prompt == ""


def test_an_option_that_is_one_path_becomes_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Option("one_file", "--one-file", Kind.VALUE, path=True, offer=Offer("A file."))
    monkeypatch.setattr(values, "CARRIED", (("one_file", one),))
    found = values.launch_members({"one_file": "a.md"}, here=True)
    assert found == {"one_file": str(Path.cwd() / "a.md")}


def test_a_relative_path_is_refused_for_another_machine() -> None:
    with pytest.raises(UsageError, match="absolute"):
        members(here=False, plugin_dirs=["plugins"])


def test_what_is_no_json_object_is_refused() -> None:
    for text in ("[1]", "{"):
        with pytest.raises(UsageError, match="--subagents"):
            values.json_members(text, "--subagents")
