"""The settings that a program's CLI gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import UsageError
from quarterdeck.program.arguments import Given
from quarterdeck.program.settings import guarded_settings

NEEDED = {"crossSessionInbound": "refuse", "env": {"CLAUDE_CODE_SIMPLE": "0"}}


@pytest.fixture
def files() -> Iterator[ArgumentFiles]:
    with ArgumentFiles() as made:
        yield made


@pytest.mark.parametrize("given", [None, "", " "])
def test_without_settings_there_are_those_that_the_hub_needs(
    given: str | None, tmp_path: Path, files: ArgumentFiles
) -> None:
    assert json.loads(guarded_settings(Given(settings=given), tmp_path, files)) == NEEDED


def test_settings_of_the_program_are_kept(tmp_path: Path, files: ArgumentFiles) -> None:
    own = {
        "env": {"A": "ä", "CLAUDE_CODE_SIMPLE": "false"},
        "n": 12345678901234567890,
        "permissions": {"deny": ["Read(/etc/**)"]},
        "crossSessionInbound": "refuse",
    }
    found = guarded_settings(Given(settings=json.dumps(own)), tmp_path, files)
    assert json.loads(found) == {**own, "env": {"A": "ä", "CLAUDE_CODE_SIMPLE": "0"}}
    assert '"n":12345678901234567890' in found
    assert files.folder is None


def test_settings_of_a_file_stay_in_a_file_that_nobody_else_reads(
    tmp_path: Path, files: ArgumentFiles
) -> None:
    (tmp_path / "own.json").write_text('{"env":{"KEY":"secret"},"permissions":{"deny":["Bash"]}}')
    found = Path(guarded_settings(Given(settings="own.json"), tmp_path, files))
    assert found.parent != tmp_path
    assert found.parent.stat().st_mode & 0o077 == 0
    assert json.loads(found.read_text()) == {
        **NEEDED,
        "env": {"KEY": "secret", "CLAUDE_CODE_SIMPLE": "0"},
        "permissions": {"deny": ["Bash"]},
    }


def test_settings_that_are_too_long_for_an_argument_go_into_a_file(
    tmp_path: Path, files: ArgumentFiles
) -> None:
    own = json.dumps({"note": "x" * 130_000})
    found = guarded_settings(Given(settings=own), tmp_path, files)
    assert json.loads(Path(found).read_text())["crossSessionInbound"] == "refuse"


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ('{"crossSessionInbound":"accept"}', "messages of other sessions are refused"),
        ('{"env":{"CLAUDE_CODE_SIMPLE":"1"}}', "calls no hooks"),
        ('{"env":{"CLAUDE_CODE_SIMPLE":1}}', "calls no hooks"),
        ('{"env":[]}', "env"),
        ("{", "cannot be read"),
        ("none.json", "cannot be read"),
    ],
)
def test_settings_that_contradict_the_hub_or_are_none_are_refused(
    own: str, reason: str, tmp_path: Path, files: ArgumentFiles
) -> None:
    with pytest.raises(UsageError, match=reason):
        guarded_settings(Given(settings=own), tmp_path, files)
    with pytest.raises(UsageError, match=reason):
        guarded_settings(Given(managed_settings=own), tmp_path, files)


@pytest.mark.parametrize("version", ["2.1.120", "2.1.325", None])
def test_managed_settings_do_not_switch_all_hooks_off(
    version: str | None, tmp_path: Path, files: ArgumentFiles
) -> None:
    """2.1.120 calls none then, if its entry point is an SDK's (tried)."""
    given = Given(managed_settings='{"disableAllHooks":true}')
    with pytest.raises(UsageError, match="the hub's rules would not hold"):
        guarded_settings(given, tmp_path, files, version)
    given = Given(managed_settings='{"disableAllHooks":false}')
    guarded_settings(given, tmp_path, files, version)


def test_paths_from_the_folder_of_the_file_are_whole_paths_in_the_copy(
    tmp_path: Path, files: ArgumentFiles
) -> None:
    (tmp_path / "own.json").write_text('{"permissions":{"deny":["Read(/private/**)"]}}')
    found = Path(guarded_settings(Given(settings="own.json"), tmp_path, files, "2.1.325"))
    deny = json.loads(found.read_text())["permissions"]["deny"]
    assert deny == [f"Read(/{tmp_path}/private/**)"]
