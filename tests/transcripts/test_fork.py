from __future__ import annotations

import json
from pathlib import Path

import claude_agent_sdk as official
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts import fork_session, list_sessions, session_info, session_messages
from support.examples import examples
from support.session_files import Disk, Json, assistant, dump, fresh_disk, trees, user, uuid_number

SESSION = uuid_number(0)


def normal(path: Path) -> list[object]:
    """The lines of a fork, with numbers in place of new uuids and without the time of forking."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    numbers = {line["uuid"]: number for number, line in enumerate(lines)}
    last = max((n for n, line in enumerate(lines) if "forkedFrom" in line), default=-1)
    for number, line in enumerate(lines):
        assert line["sessionId"] == path.stem
        line["sessionId"] = "new"
        for name in ("uuid", "parentUuid", "logicalParentUuid"):
            if line.get(name) is not None:
                line[name] = numbers.get(line[name], "gone")
            else:
                line.pop(name, None)
        if number >= last or "2026-01-02" not in line["timestamp"]:
            line.pop("timestamp")
    return lines


@settings(max_examples=examples(120))
@given(trees(rings=False), st.one_of(st.none(), st.integers(1, 12)))
def test_a_fork_is_what_the_official_sdk_makes(tree: list[Json | bytes], cut: int | None) -> None:
    up_to = None if cut is None else uuid_number(cut)
    with fresh_disk() as disk:
        disk.session(tree, session_id=SESSION)
        try:
            theirs = official.fork_session(SESSION, up_to_message_id=up_to).session_id
        except ValueError:
            with pytest.raises(UsageError, match="no message"):
                fork_session(SESSION, up_to_message_id=up_to, config_dir=disk.config)
            return
        ours = fork_session(SESSION, up_to_message_id=up_to, config_dir=disk.config)
        folder = disk.folder()
        assert normal(folder / f"{ours}.jsonl") == normal(folder / f"{theirs}.jsonl")


def test_a_fork_is_a_session_of_its_own_with_the_same_conversation(disk: Disk) -> None:
    source = disk.session([user(1, "hi"), assistant(2, "there", 1)], session_id=SESSION)
    before = source.read_bytes()
    fork = fork_session(SESSION, config_dir=disk.config)
    old = session_messages(SESSION, config_dir=disk.config)
    new = session_messages(fork, config_dir=disk.config)
    assert [bytes(m.message) for m in new] == [bytes(m.message) for m in old]
    assert {m.uuid for m in new}.isdisjoint(m.uuid for m in old)
    assert {m.session_id for m in new} == {fork}
    assert source.read_bytes() == before
    info = session_info(fork, config_dir=disk.config)
    assert info is not None
    assert info.custom_title == "hi (fork)"
    assert len(list_sessions(config_dir=disk.config)) == 2


def test_a_fork_takes_the_title_that_it_is_given(disk: Disk) -> None:
    disk.session([user(1, "hi")], session_id=SESSION)
    for title, shown in ((" Mine ", "Mine"), ("  ", "hi (fork)"), ("\ud83d", "\ufffd")):
        info = session_info(
            fork_session(SESSION, title=title, config_dir=disk.config), config_dir=disk.config
        )
        assert info is not None
        assert info.summary == shown


def test_what_an_entry_says_is_copied_byte_for_byte(disk: Disk) -> None:
    odd = dump(user(1, "TEXT")).replace(
        b'"TEXT"', b'[ 1.50, 1e3, 12345678901234567890123, "\\u00e9" ]'
    )
    disk.session([odd], session_id=SESSION)
    fork = fork_session(SESSION, config_dir=disk.config)
    (message,) = session_messages(fork, config_dir=disk.config)
    assert b'[ 1.50, 1e3, 12345678901234567890123, "\\u00e9" ]' in bytes(message.message)


def test_a_ring_of_progress_entries_does_not_hang_the_fork(disk: Disk) -> None:
    ring = [
        {"type": "progress", "uuid": uuid_number(a), "parentUuid": uuid_number(b)}
        for a, b in ((2, 3), (3, 2))
    ]
    disk.session([*ring, user(1, "hi", 2)], session_id=SESSION)
    fork = fork_session(SESSION, config_dir=disk.config)
    assert len(session_messages(fork, config_dir=disk.config)) == 1


def test_what_cannot_be_forked_leaves_no_file(disk: Disk) -> None:
    path = disk.session([{"type": "summary", "summary": "s"}], session_id=SESSION)
    with pytest.raises(UsageError, match="no messages to fork"):
        fork_session(SESSION, config_dir=disk.config)
    with pytest.raises(UsageError, match="not a message id"):
        fork_session(SESSION, up_to_message_id="../x", config_dir=disk.config)
    with pytest.raises(UsageError, match="no session"):
        fork_session(uuid_number(7), config_dir=disk.config)
    assert list(disk.folder().iterdir()) == [path]


def test_a_fork_can_be_read_by_its_owner_only(disk: Disk) -> None:
    disk.session([user(1, "hi")], session_id=SESSION)
    fork = disk.folder() / f"{fork_session(SESSION, config_dir=disk.config)}.jsonl"
    assert fork.stat().st_mode & 0o777 == 0o600
