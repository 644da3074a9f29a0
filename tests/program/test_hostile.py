"""A program that tries to get around the policy, with real CLIs, through a hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from program.conftest import OURS, Programs
from quarterdeck.testing import RealCli
from quarterdeck.testing.script import ToolUse, play, reply
from support.served_deck import until_true

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

POLICY = """
default = "cli"

[[rule]]
name = "no evil"
verdict = "deny"
command = "touch evil"
message = "nothing evil"

[[rule]]
name = "anything else"
verdict = "allow"
command = "touch"

[[rule]]
name = "the owner pushes"
verdict = "ask"
command = "git push"
answered_by = ["role:owner"]
"""


@pytest.mark.parametrize("version", ["2.1.120", "2.1.325"])
async def test_a_program_does_not_get_around_the_policy(
    version: str, programs: Programs, clis: dict[str, RealCli], tmp_path: Path
) -> None:
    deck = programs.deck
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    deck.command.env["QUARTERDECK_POLICY_FILE"] = str(policy)
    await deck.serve()
    commands = ("touch made", "touch plain", "git push")
    script = play(*(reply(ToolUse("Bash", {"command": each})) for each in commands), "end")
    program = await programs.run(
        [str(Path(__file__).with_name("hostile.py")), script, str(OURS)],
        QUARTERDECK_CLAUDE=clis[version].command[-1],
    )
    await until_true(lambda: bool(deck.client.asks()))
    (ask,) = deck.client.asks()
    assert "git push" in ask.opened.title
    await program.hear("hook asked about git push")
    await deck("answer", ask.opened.ask, "deny", "-m", "not today")
    said = await program.end()
    for refused in ("simple error", "inbox error", "bypass error"):
        assert refused in said, said
    assert "mode success" in said
    assert "result success" in said
    folder = deck.command.work / "program-0"
    assert [each.name for each in folder.iterdir()] == ["changed"], said
    audit = (await deck("audit")).out
    by = "local's program hostile.py"
    for entry in (
        f"request by {by}  apply_flag_settings: settings (env), refused",
        f"request by {by}  set_permission_mode: mode acceptEdits",
        f"hook    by {by}  PreToolUse Bash: allow, changes the input",
        f"hook    by {by}  PermissionRequest Bash: allow",
        "by policy  Bash: touch evil",
        "by policy  Bash: touch changed",
    ):
        assert entry in audit, audit
    log = (await deck("log", ask.session)).out
    assert f"{by} has answered, and that does not count" in log, log
