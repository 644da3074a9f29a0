from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import claude_agent_sdk as official
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts import (
    delete_session,
    list_sessions,
    rename_session,
    session_info,
    session_messages,
    tag_session,
)
from support.examples import examples
from support.session_files import Disk, dump, fresh_disk, user, uuid_number

SESSION = uuid_number(0)
_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def last_line(path: Path) -> object:
    return json.loads(path.read_bytes().splitlines()[-1])


@settings(max_examples=examples(80))
@given(_words)
@example("\u200b")
@example("ﬁ\u200b\u0301\ue000 \u2066x")
@example("  ")
def test_titles_and_tags_are_written_as_the_official_sdk_writes_them(words: str) -> None:
    with fresh_disk() as disk:
        path = disk.session([user(1, "hi")], session_id=SESSION)
        before = path.read_bytes()

        def written(change: object) -> object:
            path.write_bytes(before)
            try:
                assert callable(change)
                change(SESSION, words)
            except ValueError:
                return "refused"
            return last_line(path)

        assert written(rename_session) == written(official.rename_session)
        assert written(tag_session) == written(official.tag_session)


def test_a_title_and_a_tag_are_seen_at_once_and_a_tag_can_be_taken_away(disk: Disk) -> None:
    disk.session([user(1, "hi")], session_id=SESSION)
    rename_session(SESSION, "  Größe 😀 ", config_dir=disk.config)
    tag_session(SESSION, "red", config_dir=disk.config)
    info, theirs = session_info(SESSION, config_dir=disk.config), official.get_session_info(SESSION)
    assert info is not None
    assert theirs is not None
    assert (info.summary, info.tag) == (theirs.summary, theirs.tag) == ("Größe 😀", "red")
    tag_session(SESSION, None, config_dir=disk.config)
    info, theirs = session_info(SESSION, config_dir=disk.config), official.get_session_info(SESSION)
    assert info is not None
    assert theirs is not None
    assert info.tag is theirs.tag is None


def test_a_line_that_was_cut_does_not_swallow_the_one_that_we_append(disk: Disk) -> None:
    cut = dump(user(2, "killed while", 1))[:60]
    path = disk.session([user(1, "hi"), cut], session_id=SESSION, end=b"")
    rename_session(SESSION, "named", config_dir=disk.config)
    assert [info.custom_title for info in list_sessions(config_dir=disk.config)] == ["named"]
    assert path.read_bytes().count(cut + b"\n") == 1


def test_half_a_character_in_a_title_is_replaced(disk: Disk) -> None:
    path = disk.session([user(1, "hi")], session_id=SESSION)
    rename_session(SESSION, "a\ud83d", config_dir=disk.config)
    line = {"type": "custom-title", "customTitle": "a\ufffd", "sessionId": SESSION}
    assert last_line(path) == line


def test_many_writers_at_once_lose_nothing(disk: Disk) -> None:
    path = disk.session([user(1, "hi")], session_id=SESSION)

    def rename(number: int) -> None:
        rename_session(SESSION, f"title {number}", config_dir=disk.config)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rename, range(100)))
    titles = {json.loads(line)["customTitle"] for line in path.read_bytes().splitlines()[1:]}
    assert titles == {f"title {number}" for number in range(100)}


@pytest.mark.parametrize("words", ["", " \n"])
def test_an_empty_title_or_tag_is_refused_and_nothing_is_written(disk: Disk, words: str) -> None:
    path = disk.session([user(1, "hi")], session_id=SESSION)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="must not be empty"):
        rename_session(SESSION, words, config_dir=disk.config)
    with pytest.raises(UsageError, match="visible character"):
        tag_session(SESSION, words, config_dir=disk.config)
    assert path.read_bytes() == before


@pytest.mark.process
def test_a_session_that_is_not_there_cannot_be_changed(disk: Disk) -> None:
    with pytest.raises(UsageError, match=r"no session .* in any project"):
        rename_session(SESSION, "x", config_dir=disk.config)
    with pytest.raises(UsageError, match=r"no session .* for "):
        delete_session(SESSION, directory=disk.work, config_dir=disk.config)
    with pytest.raises(UsageError, match="must be a UUID"):
        delete_session("../" + SESSION, config_dir=disk.config)
    assert list(disk.projects.iterdir()) == []


class TestDeleting:
    def test_the_file_and_the_folder_go_and_nothing_else(self, disk: Disk) -> None:
        path = disk.session([user(1, "hi")], session_id=SESSION)
        other = disk.session([user(1, "stays")])
        (path.with_suffix("") / "subagents").mkdir(parents=True)
        (path.with_suffix("") / "subagents" / "agent-1.jsonl").write_text("{}")
        outside = disk.work / "keep"
        outside.write_text("keep")
        (path.with_suffix("") / "link").symlink_to(disk.work)
        delete_session(SESSION, config_dir=disk.config)
        assert list(disk.folder().iterdir()) == [other]
        assert outside.read_text() == "keep"

    def test_it_leaves_what_the_official_sdk_leaves(self, disk: Disk) -> None:
        left: list[list[str]] = []
        for delete in (delete_session, official.delete_session):
            path = disk.session([user(1, "hi")], session_id=SESSION)
            (path.with_suffix("") / "subagents").mkdir(parents=True)
            delete(SESSION)
            left.append(sorted(entry.name for entry in disk.folder().iterdir()))
        assert left == [[], []]

    def test_a_project_that_is_a_link_is_left_alone(self, disk: Disk) -> None:
        path = disk.session([user(1, "hi")], session_id=SESSION, folder=disk.work)
        (disk.projects / "-link").symlink_to(disk.work)
        with pytest.raises(UsageError, match="is a link out of"):
            delete_session(SESSION, config_dir=disk.config)
        assert path.exists()

    def test_a_session_that_is_a_link_is_left_alone(self, disk: Disk) -> None:
        target = disk.session([user(1, "hi")], session_id=SESSION, folder=disk.work)
        link = disk.folder() / target.name
        link.symlink_to(target)
        with pytest.raises(UsageError, match="is a link: not changed"):
            delete_session(SESSION, config_dir=disk.config)
        with pytest.raises(UsageError, match="is a link: not changed"):
            rename_session(SESSION, "x", config_dir=disk.config)
        assert link.is_symlink()
        assert target.read_bytes() == dump(user(1, "hi")) + b"\n"
        assert len(session_messages(SESSION, config_dir=disk.config)) == 1

    def test_a_folder_of_subagents_that_is_a_link_is_left_alone(self, disk: Disk) -> None:
        path = disk.session([user(1, "hi")], session_id=SESSION)
        (disk.work / "keep").write_text("keep")
        path.with_suffix("").symlink_to(disk.work)
        with pytest.raises(UsageError, match="is a link: not changed"):
            delete_session(SESSION, config_dir=disk.config)
        assert path.exists()
        assert (disk.work / "keep").exists()

    def test_the_projects_folder_itself_may_be_a_link(self, disk: Disk) -> None:
        disk.session([user(1, "hi")], session_id=SESSION)
        shutil.move(disk.projects, disk.work / "moved")
        disk.projects.symlink_to(disk.work / "moved")
        delete_session(SESSION, config_dir=disk.config)
        assert list_sessions(config_dir=disk.config) == []
