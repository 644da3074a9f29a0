from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.runtime.data_dir import data_home


def test_the_folder_that_is_named_is_made_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "a" / "b"))
    folder = data_home()
    assert folder == tmp_path / "a" / "b"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_without_a_name_it_is_the_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QUARTERDECK_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_home(create=False) == tmp_path / "quarterdeck"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home(create=False) == tmp_path / ".local" / "share" / "quarterdeck"
    monkeypatch.setattr("sys.platform", "darwin")
    support = tmp_path / "Library" / "Application Support"
    assert data_home(create=False) == support / "quarterdeck"


@pytest.mark.process
def test_git_passes_over_the_folder_where_it_lies_in_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    (data_home() / "cli.token").write_text("secret")
    data_home()  # a second time nothing is written
    listed = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    found = subprocess.run(listed, check=True, capture_output=True, text=True)
    assert found.stdout == ""
    assert (tmp_path / "data" / ".gitignore").read_text() == "*\n"


def test_a_relative_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", "data")
    with pytest.raises(UsageError, match="absolute"):
        data_home()


def test_a_file_in_its_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="data folder"):
        data_home()
