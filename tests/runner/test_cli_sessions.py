"""The sessions that the CLI has on a machine's disk, as a person who looks for one sees them."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.protocol.machine_requests import SeeCliSessions
from quarterdeck.runner.cli_sessions import see_cli_sessions


def write(folder: Path, number: int, prompt: object, cwd: str) -> str:
    id_ = str(UUID(int=number))
    line = {
        "type": "user",
        "uuid": str(UUID(int=1000 + number)),
        "cwd": cwd,
        "gitBranch": "main\nother",
        "timestamp": f"2026-11-17T20:00:{number:02}.000Z",
        "message": {"role": "user", "content": prompt},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{id_}.jsonl").write_text(json.dumps(line) + "\n")
    return id_


def test_sessions_are_listed_within_limits_and_hostile_files_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    project = tmp_path / "projects" / "-work"
    first = write(project, 1, "Fix the\nbug\u202e " + "x" * 5000, "/work")
    second = write(project, 2, "Second", "/" + "y" * 5000)
    (project / f"{UUID(int=3)}.jsonl").write_bytes(b"\xff\xfe not json")
    (project / "notes.txt").write_text("no session")
    found = see_cli_sessions(SeeCliSessions(limit=10))
    by_id = {each.cli_session: each for each in found.sessions}
    assert set(by_id) == {first, second}
    assert by_id[first].title.startswith("Fix the bug\ufffd")
    assert len(by_id[first].title) <= 200
    assert (by_id[first].directory, by_id[first].branch) == ("/work", "main other")
    assert by_id[second].directory == ""  # nobody could start there
    assert not found.more
    one = see_cli_sessions(SeeCliSessions(limit=0))
    assert (len(one.sessions), one.more) == (1, True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nothing"))
    assert see_cli_sessions(SeeCliSessions()).sessions == ()
