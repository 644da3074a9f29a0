"""What a person sees of a file before a call replaces it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import FileState, PutFile, SeeFile, SeenFile
from quarterdeck.worktrees import files
from quarterdeck.worktrees.files import LARGEST_TEXT, see_file, target_of


def see(folder: Path, path: str) -> SeenFile:
    return see_file(SeeFile(directory=str(folder), path=path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (tmp_path / "secret").write_text("outside")
    return made


@pytest.mark.parametrize("path", ["a.txt", "{0}/a.txt", "x/../a.txt"])
def test_a_text_is_seen_whole(folder: Path, path: str) -> None:
    (folder / "a.txt").write_text("one\ntwö\n")
    found = see(folder, path.format(folder))
    assert (found.state, found.text, found.size) == (FileState.TEXT, "one\ntwö\n", 9)
    assert found.path == str(folder.resolve() / "a.txt")


def test_each_other_kind_of_file_is_told_and_not_read(folder: Path) -> None:
    (folder / "binary").write_bytes(b"a\0b")
    (folder / "latin").write_bytes(b"caf\xe9")
    (folder / "large").write_bytes(b"x" * (LARGEST_TEXT + 1))
    (folder / "dir").mkdir()
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "dangling").symlink_to(folder / "nothing")
    os.mkfifo(folder / "pipe")
    states = {
        "binary": FileState.BINARY,
        "latin": FileState.BINARY,
        "large": FileState.TOO_LARGE,
        "dir": FileState.OTHER,
        "link": FileState.LINK,
        "dangling": FileState.LINK,
        "pipe": FileState.OTHER,
        "new": FileState.MISSING,
        "new/folder/file": FileState.MISSING,
        "binary/file": FileState.MISSING,
    }
    found = {name: see(folder, name) for name in states}
    assert {name: each.state for name, each in found.items()} == states
    assert not any(each.text for each in found.values())


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", ".git/config", "x/.GIT/y", "a\0b", ""]
)
def test_what_is_outside_or_belongs_to_git_is_not_read(folder: Path, path: str) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]")
    found = see(folder, path)
    assert (found.state, found.text) == (FileState.OUTSIDE, "")


def test_a_folder_that_is_a_link_leads_nowhere(folder: Path) -> None:
    (folder / "way").symlink_to(folder.parent)
    assert see(folder, "way/secret").state is FileState.OUTSIDE


def test_a_link_that_takes_the_place_of_a_folder_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, private = tmp_path / "work", tmp_path / "private"
    (work / "sub").mkdir(parents=True)
    private.mkdir()
    (private / "token").write_text("a secret of somebody else")
    (work / "sub" / "token").write_text("mine")

    def swapped(directory: Path, path: str) -> Path:
        found = target_of(directory, path)
        (work / "sub").rename(work / "away")
        (work / "sub").symlink_to(private)
        return found

    monkeypatch.setattr(files, "target_of", swapped)
    found = files.see_file(SeeFile(directory=str(work), path="sub/token"))
    assert found.text == ""
    assert found.state is not FileState.TEXT

    monkeypatch.setattr(files, "target_of", lambda *_: work / "sub" / "new")
    with pytest.raises(Conflict):
        files.put_file(PutFile(directory=str(work), path="sub/new", data=b"x"))
    assert [each.name for each in private.iterdir()] == ["token"]
