"""What comes before any command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck import __version__
from quarterdeck.cli import main
from support.bounds import SECONDS


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"quarterdeck {__version__}\n"


NOTHING_SLOW = (
    "anyio.lowlevel asyncio claude_agent_sdk cryptography httpx2 litestar markdown_it mcp"
    " opentelemetry prometheus_client pydantic rich sqlite3 textual tree_sitter uvicorn"
    " websockets yaml quarterdeck.agent quarterdeck.hub.hub quarterdeck.policy.shell"
    " quarterdeck.wire.codec"
)
WITHOUT_A_HUB = """
    --version
    --help
    run --help
    token --help
    stop
    send session text
    rm session another --stop
    rename session name
    new . prompt --max-turns 3 --max-budget-usd 2.5 --env A=B --env C=D --attach --hub http://x
    ps --all --json
"""
PROGRAM = """
import sys
from pathlib import Path
from quarterdeck.cli import main
from quarterdeck.service.local_hub import own_token

*lines, home = sys.argv[1:]
for line in lines:
    main(line.split())
    for slow in sorted(NOTHING_SLOW & set(sys.modules)):
        sys.exit(f"{line}: loads {slow}")
own_token(Path(home))
sys.exit(", ".join(sorted(NOTHING_SLOW & set(sys.modules))) or 0)
"""


@pytest.mark.process
def test_light_commands_load_nothing_that_is_slow_to_load(tmp_path: Path) -> None:
    lines = [line.strip() for line in WITHOUT_A_HUB.strip().splitlines()]
    program = f"NOTHING_SLOW = set({NOTHING_SLOW.split()})\n{PROGRAM}"
    home = str(tmp_path / "data")
    done = subprocess.run(
        [sys.executable, "-c", program, *lines, home],
        env=os.environ | {"QUARTERDECK_HOME": home},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Each of them did what it could without a hub.
    assert done.stdout.startswith(f"quarterdeck {__version__}\nUsage: quarterdeck")
    assert done.stderr.count("no hub runs on this machine") == 4
    assert "Nothing is running" in done.stdout


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run"], ["record"], ["replay"], ["doctor"], ["sessions", "list"]):
        assert main([*command, "--help"]) == 0
        assert "Usage: quarterdeck" in capsys.readouterr().out


def test_without_a_command_there_is_help_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert "doctor" in said.out + said.err


def test_the_help_lists_each_command_once_below_a_heading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from quarterdeck.cli.app import app
    from quarterdeck.cli.commands.groups import GROUPS, OTHERS

    assert main(["--help"]) == 0
    shown = capsys.readouterr().out.splitlines()
    declared = [each.name for each in app.registered_commands]
    declared += [each.name for each in app.registered_groups]
    for name in declared:
        assert sum(line.startswith(f"  {name} ") for line in shown) == 1, name
    assert not any(line.endswith("...") for line in shown[1:])  # no sentence is cut
    for title, _ in GROUPS:
        assert f"{title}:" in shown
    assert f"{OTHERS}:" not in shown, "name the new command in a group"
