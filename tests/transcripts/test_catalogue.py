from __future__ import annotations

import os

import claude_agent_sdk as official
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts import SessionInfo, list_sessions, session_info
from support.examples import examples
from support.session_files import Disk, Json, assistant, fresh_disk, listed, user, uuid_number

_TEXTS = (
    "session_id",
    "summary",
    "file_size",
    "custom_title",
    "first_prompt",
    "git_branch",
    "cwd",
    "tag",
)


def same(ours: SessionInfo, theirs: official.SDKSessionInfo) -> bool:
    """Whether both say the same; the official SDK rounds times through floats."""
    plain = all(getattr(ours, name) == getattr(theirs, name) for name in _TEXTS)
    return (
        plain
        and abs(ours.last_modified - theirs.last_modified) <= 1
        and (ours.created_at is None) == (theirs.created_at is None)
        and abs((ours.created_at or 0) - (theirs.created_at or 0)) <= 1
    )


@settings(max_examples=examples(60))
@given(st.lists(listed(), min_size=1, max_size=3))
def test_a_listing_says_what_the_official_sdk_says(sessions: list[list[Json | bytes]]) -> None:
    with fresh_disk() as disk:
        for lines in sessions:
            disk.session(lines)
        ours, theirs = list_sessions(config_dir=disk.config), official.list_sessions()
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert same(one, other), (one, other)
            assert session_info(one.session_id, config_dir=disk.config) == one


def test_the_newest_session_comes_first_and_pages_do_not_overlap(disk: Disk) -> None:
    ids = [disk.session([user(1, f"prompt {n}")]).stem for n in range(5)]
    newest_first = ids[::-1]

    def page(limit: int | None, offset: int) -> list[str]:
        found = list_sessions(limit=limit, offset=offset, config_dir=disk.config)
        return [info.session_id for info in found]

    assert page(None, 0) == newest_first
    assert page(2, 0) + page(2, 2) + page(2, 4) == newest_first
    assert page(0, 0) == page(3, 99) == []
    assert page(2, 1) == [info.session_id for info in official.list_sessions(limit=2, offset=1)]


@pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (None, -1)])
def test_a_negative_page_is_refused(disk: Disk, limit: int | None, offset: int) -> None:
    with pytest.raises(UsageError, match="must not be negative"):
        list_sessions(limit=limit, offset=offset, config_dir=disk.config)


def test_a_session_in_two_projects_is_listed_once_where_it_is_newest(disk: Disk) -> None:
    for name in ("-a", "-b"):
        disk.session([user(1, name)], session_id=uuid_number(0), folder=disk.folder(name))
    assert [info.first_prompt for info in list_sessions(config_dir=disk.config)] == ["-b"]


def test_nothing_in_the_folder_can_make_the_listing_fail_or_hang(disk: Disk) -> None:
    good = disk.session([user(1, "good")]).stem
    folder = disk.folder()
    (disk.projects / "a file").write_text("not a folder")
    (folder / f"{uuid_number(1)}.jsonl").mkdir()
    os.mkfifo(folder / f"{uuid_number(2)}.jsonl")
    (folder / f"{uuid_number(3)}.jsonl").symlink_to(folder / "nowhere")
    (folder / f"{uuid_number(4)}.jsonl").touch()
    (folder / f"{uuid_number(5)}.jsonl").write_bytes(os.urandom(200_000))
    (folder / f"{uuid_number(6)}.jsonl").write_bytes(b"[" * 200_000)
    (folder / f"{uuid_number(7)}.jsonl").write_bytes(b'{"message":' * 50_000)
    (folder / f"{uuid_number(8)}.jsonl").write_bytes(b"\n" * 100_000)
    (folder / "notes.jsonl").write_text('{"type":"custom-title","customTitle":"no session"}')
    assert [info.session_id for info in list_sessions(config_dir=disk.config)] == [good]


@pytest.mark.process
def test_without_any_sessions_the_list_is_empty(disk: Disk) -> None:
    assert list_sessions(config_dir=disk.config) == []
    assert list_sessions(config_dir=disk.config / "missing") == []
    assert list_sessions(disk.work, config_dir=disk.config) == []
    assert session_info(uuid_number(9), config_dir=disk.config) is None


def test_a_first_line_that_is_too_long_to_be_read_still_tells_what_stands_before_its_text(
    disk: Disk,
) -> None:
    title = {"type": "custom-title", "customTitle": "big"}
    disk.session([user(1, "z" * 200_000, cwd='/ho"me'), title])
    (info,) = list_sessions(config_dir=disk.config)
    assert (info.cwd, info.git_branch, info.first_prompt) == ('/ho"me', "main", None)
    assert same(info, official.list_sessions()[0])


def test_a_subagents_own_file_is_no_session_even_when_its_first_line_is_cut(disk: Disk) -> None:
    title = {"type": "custom-title", "customTitle": "big"}
    disk.session([user(1, "z" * 200_000, isSidechain=True), title])
    assert list_sessions(config_dir=disk.config) == []


def test_names_inside_a_tools_input_are_not_taken_for_the_sessions_own(disk: Disk) -> None:
    call = {"type": "tool_use", "id": "t", "input": {"customTitle": "no", "gitBranch": "no"}}
    content = {"role": "assistant", "content": [call]}
    disk.session([user(1, "mine"), {**assistant(2, "", 1), "message": content}])
    (info,) = list_sessions(config_dir=disk.config)
    assert (info.custom_title, info.git_branch, info.summary) == (None, "main", "mine")


def test_half_a_character_becomes_the_replacement_character(disk: Disk) -> None:
    cut = b'{"type":"last-prompt","lastPrompt":"smile \\ud83d","note":"\\\\ud83d \\ud83d\\ude00"}'
    disk.session([user(1, "hi"), cut])
    (info,) = list_sessions(config_dir=disk.config)
    assert info.summary == "smile \ufffd"


def test_a_member_of_the_wrong_kind_spoils_only_itself(disk: Disk) -> None:
    disk.session([user(1, "hi", timestamp=5, gitBranch=["x"], customTitle={"a": 1})])
    (info,) = list_sessions(config_dir=disk.config)
    assert (info.first_prompt, info.created_at, info.git_branch) == ("hi", None, None)
