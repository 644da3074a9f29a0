"""What comes before any command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quarterdeck import __version__
from quarterdeck.cli import main
from support.bounds import SECONDS


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"quarterdeck {__version__}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"]])
@pytest.mark.process
def test_help_loads_nothing_that_is_slow_to_load(arguments: list[str]) -> None:
    program = (
        "import sys; from quarterdeck.cli import main; code = main(sys.argv[1:]);"
        "slow = {'anyio', 'mcp', 'uvicorn', 'quarterdeck.agent', 'quarterdeck.wire.codec'};"
        "sys.exit(code or ','.join(slow & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"quarterdeck" in done.stdout


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run"], ["record"], ["replay"], ["doctor"], ["sessions", "list"]):
        assert main([*command, "--help"]) == 0
        assert "Usage: quarterdeck" in capsys.readouterr().out


def test_without_a_command_there_is_help_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert "doctor" in said.out + said.err
