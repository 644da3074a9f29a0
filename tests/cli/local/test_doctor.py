"""What the doctor finds, and that it shows no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.cli.local.findings import Finding, Level, look
from quarterdeck.cli.local.probe_commands import NOT_TRIED, samples
from quarterdeck.testing import fake
from quarterdeck.testing.clis import RealCli
from quarterdeck.wire.commands import COMMANDS
from support.command_line import Quarterdeck

SECRET = "sk-ant-very-secret"


@pytest.fixture
def environ(tmp_path: Path, clis: dict[str, RealCli]) -> dict[str, str]:
    """A machine with the newest CLI and nothing else."""
    return {
        "HOME": str(tmp_path),
        "QUARTERDECK_CLAUDE": clis["2.1.325"].command[-1],
        "PATH": "/bin",
    }


def about(topic: str, findings: list[Finding]) -> list[tuple[Level, str]]:
    return [(found.level, found.text) for found in findings if found.topic == topic]


def test_each_version_is_told_what_it_can_and_cannot(
    environ: dict[str, str], clis: dict[str, RealCli], tmp_path: Path
) -> None:
    dials: dict[str, bool] = {}
    warned: dict[str, bool] = {}
    for version, cli in clis.items():
        environ["PATH"] = str(Path(cli.command[0]).parent)
        _, findings = look(cli.command[-1], api_billing=False, environ=environ)
        dials[version] = any("can dial" in text for _, text in about("transport", findings))
        warned[version] = any(level is Level.WARNING for level, _ in about("version", findings))
    assert dials == {"2.1.37": True, "2.1.62": True, "2.1.120": True, "2.1.325": False}
    assert warned == {"2.1.37": True, "2.1.62": True, "2.1.120": False, "2.1.325": False}


def test_no_cli_is_a_problem_with_advice(environ: dict[str, str], tmp_path: Path) -> None:
    cli, findings = look(str(tmp_path / "none"), api_billing=False, environ=environ)
    assert cli is None
    assert findings[0].level is Level.PROBLEM


def test_a_login_is_seen_without_being_read(environ: dict[str, str], tmp_path: Path) -> None:
    _, findings = look(None, api_billing=False, environ=environ)
    ((level, _),) = about("login", findings)
    assert level is Level.WARNING
    folder = tmp_path / ".claude"
    folder.mkdir()
    credentials = folder / ".credentials.json"
    credentials.write_text(SECRET)
    credentials.chmod(0o644)
    _, findings = look(None, api_billing=False, environ=environ)
    assert [level for level, _ in about("login", findings)] == [Level.OK, Level.WARNING]
    assert SECRET not in repr(findings)


def test_a_key_that_would_not_be_used_is_told_of_by_name_only(environ: dict[str, str]) -> None:
    environ |= {"ANTHROPIC_API_KEY": SECRET, "CLAUDE_CODE_OAUTH_TOKEN": SECRET, "CLAUDECODE": "1"}
    _, off = look(None, api_billing=False, environ=environ)
    ((level, text),) = about("billing", off)
    assert level is Level.NOTE
    assert text.startswith("ANTHROPIC_API_KEY is set but not passed on")
    _, on = look(None, api_billing=True, environ=environ)
    assert [level for level, _ in about("billing", on)] == [Level.WARNING]
    assert any("inside Claude Code" in text for _, text in about("environment", on))
    assert SECRET not in repr(off) + repr(on)


def test_api_billing_without_a_key_is_a_problem(environ: dict[str, str]) -> None:
    _, findings = look(None, api_billing=True, environ=environ)
    assert about("billing", findings)[0][0] is Level.PROBLEM


def test_a_folder_that_is_in_the_way_is_a_problem(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".claude").write_text("a file")
    _, findings = look(None, api_billing=False, environ=environ)
    assert about("folder", findings)[0][0] is Level.PROBLEM


def test_a_probe_sends_each_command_or_says_why_not(tmp_path: Path) -> None:
    sent = {command.subtype for command in samples(tmp_path)}
    assert sent | NOT_TRIED == set(COMMANDS)
    assert not sent & NOT_TRIED


@pytest.mark.anyio
@pytest.mark.real_cli
async def test_a_probe_leads_the_real_cli_through_everything(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck("doctor", "--probe", "--json", ANTHROPIC_API_KEY=SECRET)
    assert done.code == 0, done.out + done.err
    report = json.loads(done.out)
    assert report["version"] == "2.1.325"
    probe = report["probe"]
    assert [scene for scene in probe["scenes"] if scene["problem"]] == []
    assert len(probe["scenes"]) >= 14
    assert {"can_use_tool", "hook_callback", "mcp_message"} <= set(probe["asked"])
    assert {"system/compact_boundary", "system/api_retry", "result"} <= set(probe["heard"])
    assert probe["commands"]["get_settings"] == "answered"
    assert probe["commands"]["mcp_reconnect"] == "refused"
    assert "not answered" not in probe["commands"].values()
    assert SECRET not in done.out


@pytest.mark.anyio
async def test_a_probe_tells_what_is_new(quarterdeck: Quarterdeck) -> None:
    new = fake.assistant("hi") | {"brand_new_member": 1}
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say({"type": "system", "subtype": "humming"}, new, fake.result("hi")),
        fake.Exit(0),
    )
    done = await quarterdeck("doctor", "--probe", HOME=str(quarterdeck.home))
    assert "  assistant.brand_new_member\n" in done.out
    assert "  system/humming: unknown type\n" in done.out
    assert done.code == 1  # it went away in the midst of the scenes
