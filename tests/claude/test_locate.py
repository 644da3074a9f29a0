from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quarterdeck.claude import locate
from quarterdeck.claude.locate import cli_version, find_claude
from quarterdeck.domain.errors import LaunchError
from quarterdeck.testing.clis import installed_clis


def program(path: Path, text: str = "#!/bin/sh\necho '9.8.7 (Claude Code)'\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environ(home: Path, *folders: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": ":".join(map(str, folders)) or "/nowhere", **more}


def test_what_was_named_wins_over_the_variable_and_the_path(tmp_path: Path) -> None:
    first, second, third = (program(tmp_path / name / "claude") for name in "abc")
    around = environ(tmp_path, third.parent, QUARTERDECK_CLAUDE=str(second))
    assert find_claude(first, environ=around) == (str(first),)
    assert find_claude(environ=around) == (str(second),)
    del around["QUARTERDECK_CLAUDE"]
    assert find_claude(environ=around) == (str(third),)


def test_a_name_without_a_folder_is_looked_up_on_the_path(tmp_path: Path) -> None:
    mine = program(tmp_path / "bin/claude-nightly")
    assert find_claude("claude-nightly", environ=environ(tmp_path, mine.parent)) == (str(mine),)


def test_what_was_named_and_is_not_there_is_an_error_not_a_reason_to_take_another(
    tmp_path: Path,
) -> None:
    around = environ(tmp_path, program(tmp_path / "bin/claude").parent)
    for name in (tmp_path / "missing", "no-such-command", tmp_path):
        with pytest.raises(LaunchError, match="the path that was given"):
            find_claude(name, environ=around)
    with pytest.raises(LaunchError, match="QUARTERDECK_CLAUDE"):
        find_claude(environ=around | {"QUARTERDECK_CLAUDE": str(tmp_path / "missing")})


@pytest.mark.parametrize(
    "place", [".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude"]
)
def test_the_usual_folders_are_searched_when_the_path_has_none(tmp_path: Path, place: str) -> None:
    mine = program(tmp_path / place)
    assert find_claude(environ=environ(tmp_path)) == (str(mine),)


def test_a_script_is_run_by_node_also_behind_a_link(tmp_path: Path) -> None:
    script = program(tmp_path / "lib/cli.js", "#!/usr/bin/env node\n")
    node = program(tmp_path / "bin/node")
    (tmp_path / "bin/claude").symlink_to(script)
    around = environ(tmp_path, node.parent)
    assert find_claude(environ=around) == (str(node), str(script))
    assert find_claude(script, environ=around) == (str(node), str(script))
    with pytest.raises(LaunchError, match="needs Node"):
        find_claude(script, environ=environ(tmp_path))


def test_a_program_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    mine = program(tmp_path / "claude")
    mine.chmod(0o644)
    with pytest.raises(LaunchError, match="chmod"):
        find_claude(mine, environ=environ(tmp_path))


def test_a_fruitless_search_says_where_it_looked_and_how_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "MACHINE_WIDE", ())
    with pytest.raises(LaunchError) as caught:
        find_claude(environ=environ(tmp_path))
    text = str(caught.value)
    assert "/nowhere" in text
    assert str(tmp_path / ".local/bin/claude") in text
    assert "npm install -g" in text


def test_the_version_is_read_from_the_package_without_running_the_program(tmp_path: Path) -> None:
    script = program(tmp_path / "cli.js", "process.exit(1)")
    (tmp_path / "package.json").write_text(
        '{"name": "@anthropic-ai/claude-code", "version": "1.2.3"}'
    )
    assert cli_version(("/no/such/node", str(script))) == "1.2.3"


@pytest.mark.process
def test_the_version_is_asked_of_a_program_without_a_package_and_remembered(tmp_path: Path) -> None:
    count = tmp_path / "count"
    mine = program(tmp_path / "bin/claude", f"#!/bin/sh\necho x >> {count}\necho 4.5.6\n")
    (tmp_path / "bin/package.json").write_text('{"name": "somebody-elses", "version": "1.2.3"}')
    assert cli_version((str(mine),)) == "4.5.6"
    assert cli_version((str(mine),)) == "4.5.6"
    assert count.read_text() == "x\n"
    program(mine, "#!/bin/sh\necho version 10.11.12\n")
    assert cli_version((str(mine),)) == "10.11.12"


@pytest.mark.process
def test_a_program_that_does_not_say_has_no_version(tmp_path: Path) -> None:
    silent = program(tmp_path / "silent", "#!/bin/sh\nexit 0\n")
    failing = program(tmp_path / "failing", "#!/bin/sh\necho 1.2.3\nexit 3\n")
    assert cli_version((str(silent),)) is None
    assert cli_version((str(failing),)) is None
    assert cli_version((str(tmp_path / "missing"),)) is None
    assert cli_version(()) is None


@pytest.mark.real_cli
def test_the_real_clis_tell_their_version_with_and_without_their_package(tmp_path: Path) -> None:
    for version, cli in installed_clis().items():
        assert cli_version(cli.command) == version
    native = installed_clis()["2.1.120"].command[0]
    moved = tmp_path / "claude"
    shutil.copyfile(native, moved)
    moved.chmod(0o755)
    assert cli_version((str(moved),)) == "2.1.120"
