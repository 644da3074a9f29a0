"""Settings of a repository or a user cannot keep the hub from hearing of a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.protocol.events import Said
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import ToolUse, play, reply
from quarterdeck.wire import codec
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.requests import HookCallback
from support.hub_house import House, real_spec

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

SETTINGS = {"env": {"CLAUDE_CODE_SIMPLE": "1"}, "permissions": {"allow": ["Bash"]}}


@pytest.mark.parametrize(
    ("version", "place"),
    [("2.1.120", "work/.claude/settings.json"), ("2.1.325", "home/.claude/settings.json")],
)
async def test_a_variable_that_switches_hooks_off_has_no_effect(
    version: str,
    place: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    home: House,
) -> None:
    spec = real_spec(tmp_path, clis[version], model, sandbox="off")
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text(json.dumps(SETTINGS))
    call = ToolUse("Bash", {"command": "touch made"})
    session = await home.new(spec, json.dumps(play(reply(call), "end")).encode())
    await home.until(session, lambda view: view.turns == 1)
    events = [each.event for each in await home.hub.events(session)]
    lines = [codec.from_cli(bytes(event.line)) for event in events if isinstance(event, Said)]
    requests = [line.request for line in lines if isinstance(line, ControlRequest)]
    (asked,) = [each for each in requests if isinstance(each, HookCallback)]
    assert b'"touch made"' in bytes(asked.input)
