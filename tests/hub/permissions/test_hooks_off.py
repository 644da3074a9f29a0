"""Settings of a repository or a user cannot keep hub or library from hearing of a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck import Agent, Hook, Options
from quarterdeck.protocol.events import Said
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import ToolUse, play, reply
from quarterdeck.wire import codec
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.hook_outputs import HookOutput
from quarterdeck.wire.hooks import HookEvent, HookInput, PreToolUseInput, UnknownHook
from quarterdeck.wire.requests import HookCallback
from support.hub_house import House, real_spec

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PERMISSIONS = {"permissions": {"allow": ["Bash"]}}
SIMPLE = {"env": {"CLAUDE_CODE_SIMPLE": "1"}, **PERMISSIONS}
ALL_OFF = {"disableAllHooks": True, **PERMISSIONS}
PROJECT, USER = "work/.claude/settings.json", "home/.claude/settings.json"


@pytest.mark.parametrize(
    ("version", "place", "hostile"),
    [("2.1.37", PROJECT, ALL_OFF), ("2.1.120", PROJECT, SIMPLE), ("2.1.325", USER, SIMPLE)],
)
async def test_settings_that_switch_hooks_off_have_no_effect(
    version: str,
    place: str,
    hostile: dict[str, object],
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    home: House,
) -> None:
    """The session's own settings are in a file, whose paths begin at its folder."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "settings.json").write_text('{"permissions": {"deny": ["Read(/secret)"]}}')
    (own / "secret").write_text("a secret")
    (own / "open").write_text("an open text")
    spec = real_spec(
        tmp_path,
        clis[version],
        model,
        sandbox="off",
        settings="../own/settings.json",
        add_dirs=(str(own),),
    )
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text(json.dumps(hostile))
    calls = [
        ToolUse("Bash", {"command": "touch made"}),
        ToolUse("Read", {"file_path": str(own / "secret")}),
        ToolUse("Read", {"file_path": str(own / "open")}),
    ]
    script = play(*(reply(call) for call in calls), "end")
    session = await home.new(spec, json.dumps(script).encode())
    await home.until(session, lambda view: view.turns == 1)
    events = [each.event for each in await home.hub.events(session)]
    said = [bytes(event.line) for event in events if isinstance(event, Said)]
    requests = [
        line.request for line in map(codec.from_cli, said) if isinstance(line, ControlRequest)
    ]
    asked = [each for each in requests if isinstance(each, HookCallback)]
    assert len(asked) == 2  # the CLI denies the other one by itself
    assert b'"touch made"' in bytes(asked[0].input)
    assert not any(b"a secret" in line for line in said)
    assert any(b"an open text" in line for line in said)


async def test_a_repository_does_not_keep_calls_from_the_hooks_of_a_library(
    clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / PROJECT).parent.mkdir(parents=True)
    (tmp_path / PROJECT).write_text(json.dumps(SIMPLE))
    seen: list[HookInput | UnknownHook] = []

    async def see(given: HookInput | UnknownHook) -> HookOutput | None:
        seen.append(given)
        return None

    options = Options(
        claude=clis["2.1.120"].command,
        cwd=tmp_path / "work",
        env=isolated_env(tmp_path / "home", model.url),
    )
    hooks = [Hook(event=HookEvent.PRE_TOOL_USE, function=see)]
    async with Agent(options, hooks=hooks) as agent:
        call = ToolUse("Bash", {"command": "touch made"})
        await agent.query(play(reply(call), "end")).finish()
    assert (tmp_path / "work" / "made").exists()
    (call_seen,) = seen
    assert isinstance(call_seen, PreToolUseInput)
