"""Looking into a working folder, and finding texts in it: below the folder only, and bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import FindInFiles, SeeEntries
from quarterdeck.worktrees import entries
from quarterdeck.worktrees.entries import find_in_files, see_entries
from support.repositories import make_repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


@pytest.mark.process
def test_a_folder_is_listed_with_its_folders_first_and_links_are_no_way_out(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "way out").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    found = see_entries(SeeEntries(directory=str(folder)))
    assert [(entry.name, entry.kind) for entry in found.entries] == [
        ("inner", "folder"), (".gitignore", "file"), ("readme", "file"), ("way out", "link"),
        ("pipe", "other"),
    ]  # fmt: skip
    inner = see_entries(SeeEntries(directory=str(folder), path="inner"))
    assert (inner.path, [entry.name for entry in inner.entries]) == ("inner", ["file"])
    assert (found.branch, inner.branch) == ("main", "main")
    for bad in ("way out", "..", "/etc", ".git", "readme", "way out/..", "missing"):
        with pytest.raises(Conflict):
            see_entries(SeeEntries(directory=str(folder), path=bad))
    monkeypatch.setattr(entries, "MOST_ENTRIES", 2)
    assert see_entries(SeeEntries(directory=str(folder))).left_out == 3


@pytest.mark.process
async def test_texts_are_found_in_names_and_contents(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = str(folder)
    (folder / "new Reader.py").write_text("class Thing:\n    TWO words\n")
    (folder / "noise.log").write_text("two\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "two").write_text("two\n")
    (folder / "link").symlink_to(tmp_path / "outside" / "two")
    names = await find_in_files(FindInFiles(directory=directory, text="read"))
    assert [found.path for found in names.matches] == ["readme", "new Reader.py"]
    lines = await find_in_files(FindInFiles(directory=directory, text="two", contents=True))
    assert [(found.path, found.line, found.text) for found in lines.matches] == [
        ("new Reader.py", 2, "    TWO words"), ("readme", 2, "two"),
    ]  # fmt: skip
    plain = tmp_path / "outside"
    (plain / "deep").mkdir()
    (plain / "deep" / "one").write_text("x\n")
    found = await find_in_files(FindInFiles(directory=str(plain), text="deep one"))
    assert [one.path for one in found.matches] == ["deep/one"]
    in_plain = await find_in_files(FindInFiles(directory=str(plain), text="two", contents=True))
    assert [one.path for one in in_plain.matches] == ["two"]
    for bad in ("", "a\nb", "x" * 201):
        with pytest.raises(Conflict):
            await find_in_files(FindInFiles(directory=directory, text=bad))
    monkeypatch.setattr(entries, "MOST_FOUND", 1)
    monkeypatch.setattr(entries, "MOST_WALKED", 1)
    assert (await find_in_files(FindInFiles(directory=directory, text="e"))).cut
    assert (await find_in_files(FindInFiles(directory=str(plain), text="o"))).cut
    assert (await find_in_files(FindInFiles(directory=directory, text="t", contents=True))).cut
