"""`quarterdeck sessions`, over session files as the CLI writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.cli import main
from support.session_files import Disk, assistant, user, uuid_number

ID = uuid_number(7)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.config))
    made.session([user(1, "Fix\x1b[2J it"), assistant(2, "Done: [red]x[/red]", 1)], session_id=ID)
    return made


def test_sessions_are_listed_shown_named_tagged_and_deleted(
    disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "list"]) == 0
    listed = capsys.readouterr().out
    assert ID in listed
    assert "\x1b" not in listed
    assert main(["sessions", "show", ID]) == 0
    shown = capsys.readouterr().out
    assert "> Fix␛[2J it\n" in shown
    assert shown.endswith("\nDone: [red]x[/red]\n")
    assert main(["sessions", "rename", ID, "A better name"]) == 0
    assert main(["sessions", "tag", ID, "blue"]) == 0
    assert main(["sessions", "list"]) == 0
    assert "#blue  A better name" in capsys.readouterr().out
    assert main(["sessions", "delete", "--yes", ID]) == 0
    assert main(["sessions", "list"]) == 0
    assert capsys.readouterr().out == ""


def test_machines_get_json(disk: Disk, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "list", "--json"]) == 0
    (line,) = capfd.readouterr().out.splitlines()
    assert json.loads(line)["session_id"] == ID
    assert main(["sessions", "show", "--json", ID]) == 0
    assert [json.loads(line)["type"] for line in capfd.readouterr().out.splitlines()] == [
        "user",
        "assistant",
    ]


@pytest.mark.parametrize("command", [["show"], ["delete", "--yes"], ["rename"], ["tag"]])
def test_a_session_that_is_not_there_gives_2(
    disk: Disk, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    more = ["title"] if command == ["rename"] else []
    assert main(["sessions", *command, uuid_number(9), *more]) == 2
    assert "quarterdeck: " in capsys.readouterr().err


def test_nothing_is_deleted_where_nobody_can_be_asked(
    disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "delete", ID]) == 2
    assert "--yes" in capsys.readouterr().err
    assert main(["sessions", "show", ID]) == 0
