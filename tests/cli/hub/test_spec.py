"""From the options of `new` to members of a spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.cli.commands.new_options import NewOptions
from quarterdeck.cli.hub import spec as values
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.sessions import SessionSpec


def test_options_of_new_become_members_of_the_spec(tmp_path: Path) -> None:
    file = tmp_path / "agents.json"
    file.write_text('{"scout": {"description": "d", "prompt": "p"}}')
    given = NewOptions(
        fallback_model="haiku",
        json_schema='{"type": "object"}',
        agent="scout",
        subagents=str(file),
        plugin_dirs=[str(tmp_path)],
        setting_sources="user, project",
        strict_mcp_config=True,
        include_hook_events=True,
        extra_args=["new", "--other=a=b"],
    )
    made = SessionSpec(directory="/", **given.members(here=True))
    assert (made.fallback_model, made.agent) == ("haiku", "scout")
    assert made.json_schema is not None
    assert list(made.subagents) == ["scout"]
    assert made.plugin_dirs == (str(tmp_path),)
    assert made.setting_sources == ("user", "project")
    assert made.strict_mcp_config
    assert made.include_hook_events
    assert made.extra_args == {"new": None, "other": "a=b"}
    assert SessionSpec(directory="/", **NewOptions().members(here=True)) == SessionSpec(
        directory="/"
    )
    assert NewOptions(setting_sources="").members(here=True)["setting_sources"] == ()


def test_what_is_no_json_object_is_refused() -> None:
    for text in ("[1]", "{"):
        with pytest.raises(UsageError, match="--subagents"):
            values.json_members(text, "--subagents")
