from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import PutFile
from quarterdeck.worktrees.files import LARGEST, put_file


def put(folder: Path, path: str, data: bytes = b"hello") -> str:
    return put_file(PutFile(directory=str(folder), path=path, data=data)).path


@pytest.mark.parametrize("path", ["a.txt", "new/folder/a.txt", "{0}/b.txt", "x/../c.txt"])
def test_a_file_is_stored_below_the_folder(tmp_path: Path, path: str) -> None:
    stored = Path(put(tmp_path, path.format(tmp_path)))
    assert stored.read_bytes() == b"hello"
    assert stored.is_relative_to(tmp_path)


@pytest.mark.parametrize(
    "path", ["../a", "/etc/a", "", "a/../../b", ".", "..", ".git/hooks/x", "sub/.GIT/x", "a\0b"]
)
def test_a_path_that_leads_out_or_into_git_is_refused(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(Conflict) as refused:
        put(folder, path)
    assert refused.value.code == "bad_path"
    assert list(folder.iterdir()) == []


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "file").symlink_to(outside / "file")
    with pytest.raises(Conflict, match="not below"):
        put(folder, "link/a")
    with pytest.raises(Conflict, match="already"):
        put(folder, "file")
    assert list(outside.iterdir()) == []


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    put(tmp_path, "a", b"first")
    with pytest.raises(Conflict) as refused:
        put(tmp_path, "a", b"second")
    assert refused.value.code == "file_exists"
    assert (tmp_path / "a").read_bytes() == b"first"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Conflict) as refused:
        put(tmp_path, "a", b"x" * (LARGEST + 1))
    assert refused.value.code == "too_large"
