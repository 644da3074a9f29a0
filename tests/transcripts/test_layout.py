from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from claude_agent_sdk import project_key_for_directory
from hypothesis import example, given
from hypothesis import strategies as st

from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts import (
    list_sessions,
    project_folder_name,
    project_path,
    projects_dir,
    session_info,
    session_messages,
)
from quarterdeck.transcripts.layout import find_session, worktrees
from support.bounds import SECONDS
from support.session_files import Disk, user, uuid_number

# Beyond the first 65,536 characters the official SDK for Python and the CLI disagree; there the
# CLI is right, and the test with the real CLI covers it.
_in_paths = st.text(
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="\0")
)


@given(_in_paths)
@example("a" * 199)
@example("a" * 200)
@example("é" * 300)
@example("e\u0301/../x")
def test_a_project_folder_is_named_as_the_official_sdk_names_it(text: str) -> None:
    assert project_folder_name(project_path("/" + text)) == project_key_for_directory("/" + text)


@given(st.text(st.sampled_from("ab/é-ñ_."), min_size=190, max_size=260))
def test_a_long_path_is_cut_and_hashed_as_the_official_sdk_does_it(text: str) -> None:
    assert project_folder_name(project_path("/" + text)) == project_key_for_directory("/" + text)


def test_a_character_beyond_the_basic_plane_becomes_two_hyphens() -> None:
    assert project_folder_name("/a😀b") == "-a--b"


def test_the_configuration_folder_is_the_given_one_then_the_environments_then_the_homes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "chosen"))
    assert projects_dir(tmp_path / "given") == tmp_path / "given" / "projects"
    assert projects_dir() == tmp_path / "chosen" / "projects"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert projects_dir() == tmp_path / ".claude" / "projects"


@pytest.mark.parametrize(
    "bad", ["", "../../etc/passwd", "..", uuid_number(1) + "\n", uuid_number(1) + "/x", "*"]
)
def test_an_id_that_is_no_uuid_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageError, match="must be a UUID"):
        session_info(bad, config_dir=tmp_path)
    with pytest.raises(UsageError, match="must be a UUID"):
        session_messages(bad, config_dir=tmp_path)


def test_an_empty_file_does_not_hide_the_session_in_another_project(disk: Disk) -> None:
    session_id = uuid_number(0)
    (disk.folder("-a") / f"{session_id}.jsonl").touch()
    path = disk.session([user(1, "hi")], session_id=session_id, folder=disk.folder("-b"))
    assert find_session(session_id, None, disk.config) == (path, None)


class TestLongPaths:
    @pytest.mark.process
    def test_a_folder_with_another_hash_is_found_by_its_beginning(self, disk: Disk) -> None:
        path = self._project(disk, "mine")
        name = project_folder_name(path)[:200] + "-otherhash"
        disk.session([user(1, "hi", cwd=path)], folder=disk.folder(name))
        assert [info.cwd for info in list_sessions(path, config_dir=disk.config)] == [path]

    @pytest.mark.process
    def test_an_uncut_name_of_an_old_version_is_found_too(self, disk: Disk) -> None:
        path = self._project(disk, "m")
        full = "".join(letter if letter.isalnum() else "-" for letter in path)
        assert 200 < len(full) <= 255
        disk.session([user(1, "old", cwd=path)], folder=disk.folder(full))
        disk.session([user(1, "new", cwd=path)], folder=disk.folder(project_folder_name(path)))
        found = list_sessions(path, config_dir=disk.config)
        assert [info.first_prompt for info in found] == ["new", "old"]

    @pytest.mark.process
    def test_a_neighbour_with_the_same_beginning_is_not_taken_for_it(self, disk: Disk) -> None:
        path, other = self._project(disk, "mine"), self._project(disk, "theirs")
        disk.session([user(1, "x", cwd=other)], folder=disk.folder(project_folder_name(other)))
        assert list_sessions(path, config_dir=disk.config) == []

    @staticmethod
    def _project(disk: Disk, name: str) -> str:
        base = project_path(disk.work)
        return f"{base}/{'d' * (201 - len(base))}/{name}"


@pytest.mark.process
def test_the_sessions_of_all_worktrees_of_a_repository_belong_together(disk: Disk) -> None:
    main, tree = disk.work / "main", disk.work / "tree"
    _git(disk.work, "init", "-q", str(main))
    _git(main, "commit", "-q", "--allow-empty", "-m", "begin")
    _git(main, "worktree", "add", "-q", str(tree))
    for place in (main, tree):
        folder = disk.folder(project_folder_name(project_path(place)))
        disk.session([user(1, place.name)], folder=folder)

    def prompts(*, include_worktrees: bool) -> list[str | None]:
        found = list_sessions(main, include_worktrees=include_worktrees, config_dir=disk.config)
        return [info.first_prompt for info in found]

    assert prompts(include_worktrees=True) == ["tree", "main"]
    assert prompts(include_worktrees=False) == ["main"]
    newest = list_sessions(main, config_dir=disk.config)[0]
    assert session_info(newest.session_id, directory=main, config_dir=disk.config) == newest


@pytest.mark.process
def test_a_folder_that_is_missing_or_no_repository_has_no_worktrees(tmp_path: Path) -> None:
    assert worktrees(str(tmp_path)) == []
    assert worktrees(str(tmp_path / "missing")) == []


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, timeout=SECONDS)
