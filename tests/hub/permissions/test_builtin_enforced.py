"""The built-in rules hold over a real CLI, also in a session that skips permissions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.policy.builtin import COMMAND_RULE, FILES_RULE, SOURCE
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.local_hub import private_in
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Text, ToolUse, play
from support.hub_house import house
from support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_an_agent_that_skips_permissions_reaches_neither_the_files_nor_the_command(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli], processes: Processes
) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    for folder in (tmp_path / "home", data, work):
        folder.mkdir()
    (data / "cli.token").write_text("the-secret-of-the-owner")
    (work / "link").symlink_to(data)
    spec = SessionSpec(
        directory=str(work),
        claude=clis["2.1.325"].command[-1],
        env=isolated_env(tmp_path / "home", model.url),
        mode="bypassPermissions",
        skip_permissions=True,
        auto_approve=("Bash", "Read"),
        policy="trusted-repo",
    )
    script = play(
        ToolUse("Bash", {"command": "cat ../data/cli.token; touch cat-was-run"}),
        ToolUse("Read", {"file_path": str(work / "link" / "cli.token")}),
        ToolUse("Bash", {"command": "quarterdeck answer 1 allow; touch answer-was-run"}),
        ToolUse("Bash", {"command": "touch free"}),
        Text("done"),
    )
    async with house(tmp_path, processes, Policies(data, private=private_in(data))) as home:
        session = await home.new(spec, json.dumps(script).encode())
        await home.until(session, lambda view: view.turns == 1)

        stored = await home.hub.audit(session=session)
        found = [each.event for each in stored if isinstance(each.event, Decided)]
        assert [(one.rule, one.verdict) for one in found if one.source == SOURCE] == [
            (FILES_RULE, "deny"),
            (FILES_RULE, "deny"),
            (COMMAND_RULE, "deny"),
        ]
        # The sandbox has empty folders there while the CLI runs.
        assert sorted(path.name for path in work.iterdir() if path.name[0] != ".") == [
            "free",
            "link",
        ]
        told = " ".join(turn.body.decode() for turn in model.turns)
        assert "no policy can change that" in told
        assert "the-secret-of-the-owner" not in told
