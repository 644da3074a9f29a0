from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import claude_agent_sdk as official
import msgspec
import pytest
from hypothesis import given, settings

from quarterdeck.transcripts import (
    SessionMessage,
    lines,
    list_sessions,
    list_subagents,
    session_messages,
    subagent_messages,
)
from support.examples import examples
from support.session_files import (
    Disk,
    Json,
    assistant,
    dump,
    fresh_disk,
    tool_trees,
    trees,
    user,
    uuid_number,
)

SESSION = uuid_number(0)


def flat(messages: list[SessionMessage]) -> list[tuple[object, ...]]:
    return [
        (m.type, m.uuid, m.session_id, json.loads(bytes(m.message)), m.parent_tool_use_id)
        for m in messages
    ]


def flat_official(messages: list[official.SessionMessage]) -> list[tuple[object, ...]]:
    return [(m.type, m.uuid, m.session_id, m.message, m.parent_tool_use_id) for m in messages]


@settings(max_examples=examples(120))
@given(trees())
def test_a_conversation_reads_as_the_official_sdk_reads_it(tree: list[Json | bytes]) -> None:
    with fresh_disk() as disk:
        disk.session(tree, session_id=SESSION)
        ours = session_messages(SESSION, config_dir=disk.config)
        theirs = official.get_session_messages(SESSION)
        assert flat(ours) == flat_official(theirs)


@settings(max_examples=examples(150))
@given(tool_trees())
def test_parallel_calls_are_put_back_as_the_official_sdk_does_it(tree: list[Json]) -> None:
    with fresh_disk() as disk:
        disk.session(tree, session_id=SESSION)
        ours = session_messages(SESSION, config_dir=disk.config)
        theirs = official.get_session_messages(SESSION)
        assert flat(ours) == flat_official(theirs)


@settings(max_examples=examples(60))
@given(trees())
def test_a_subagents_conversation_reads_as_the_official_sdk_reads_it(
    tree: list[Json | bytes],
) -> None:
    with fresh_disk() as disk:
        folder = disk.session([user(1, "hi")], session_id=SESSION).with_suffix("") / "subagents"
        folder.mkdir(parents=True)
        (folder / "agent-a1.jsonl").write_bytes(b"\n".join(dump(line) for line in tree))
        (folder / "agent-a1.meta.json").write_text('{"toolUseId":"toolu_1","parentAgentId":5}')
        ours = subagent_messages(SESSION, "a1", config_dir=disk.config)
        theirs = official.get_subagent_messages(SESSION, "a1")
        assert flat(ours) == flat_official(theirs)


def _call(call: str) -> Json:
    return {"type": "tool_use", "id": call, "name": "Read", "input": {}}


def _result(call: str) -> list[Json]:
    return [{"type": "tool_result", "tool_use_id": call, "content": call}]


def _with(entry: Json, *blocks: Json, response: str = "msg_1") -> Json:
    return {**entry, "message": {"role": "assistant", "id": response, "content": list(blocks)}}


def test_results_of_parallel_calls_are_put_back_behind_their_response(disk: Disk) -> None:
    disk.session(
        [
            user(1, "read both"),
            _with(assistant(2, "", 1), _call("a")),
            _with(assistant(3, "", 2), _call("b")),
            user(4, _result("a"), 2),
            user(5, _result("b"), 3),
            _with(assistant(6, "", 4), {"type": "text", "text": "done"}, response="msg_2"),
        ],
        session_id=SESSION,
    )
    found = session_messages(SESSION, config_dir=disk.config)
    assert [m.uuid for m in found] == [uuid_number(n) for n in (1, 2, 3, 5, 4, 6)]
    assert flat(found) == flat_official(official.get_session_messages(SESSION))


def test_a_branch_that_was_given_up_is_not_read(disk: Disk) -> None:
    tree = [user(1, "a"), assistant(2, "old", 1), assistant(3, "new", 1)]
    disk.session(tree, session_id=SESSION)
    found = session_messages(SESSION, config_dir=disk.config)
    assert [m.uuid for m in found] == [uuid_number(1), uuid_number(3)]


def test_meta_and_side_entries_are_hidden_and_a_compact_summary_is_kept(disk: Disk) -> None:
    tree = [
        user(1, "summary", isCompactSummary=True),
        user(2, "caveat", 1, isMeta=True),
        assistant(3, "answer", 2),
        user(4, "side", 3, isSidechain=True),
    ]
    disk.session(tree, session_id=SESSION)
    found = session_messages(SESSION, config_dir=disk.config)
    assert [(m.uuid, m.is_compact_summary) for m in found] == [
        (uuid_number(1), True),
        (uuid_number(3), False),
    ]


def test_pages_of_a_conversation_join_to_the_whole(disk: Disk) -> None:
    disk.session([user(n, f"{n}", n - 1 or None) for n in range(1, 8)], session_id=SESSION)
    whole = session_messages(SESSION, config_dir=disk.config)
    pages = [
        session_messages(SESSION, limit=3, offset=n, config_dir=disk.config) for n in (0, 3, 6)
    ]
    assert [message for page in pages for message in page] == whole
    assert len(whole) == 7


def test_a_last_line_that_was_cut_is_left_out_and_the_rest_is_read(disk: Disk) -> None:
    path = disk.session([user(1, "hi"), assistant(2, "there", 1)], session_id=SESSION)
    path.write_bytes(path.read_bytes() + dump(user(3, "never finished", 2))[:80])
    found = session_messages(SESSION, config_dir=disk.config)
    assert [m.uuid for m in found] == [uuid_number(1), uuid_number(2)]


def test_bytes_that_are_no_text_are_mended_so_that_every_body_can_be_decoded(disk: Disk) -> None:
    bad = dump(user(1, "BAD")).replace(b"BAD", b"a\xff\\ud83d\\\\ud83d\\ud83d\\ude00")
    disk.session([bad], session_id=SESSION)
    (message,) = session_messages(SESSION, config_dir=disk.config)
    assert msgspec.json.decode(message.message)["content"] == "a\ufffd\ufffd\\ud83d😀"


def test_a_file_can_be_read_while_it_is_written(disk: Disk) -> None:
    path = disk.session([user(1, "1")], session_id=SESSION)
    last = 300

    def write() -> None:
        with path.open("ab", buffering=0) as out:
            for number in range(2, last + 1):
                line = dump(user(number, f"{number}", number - 1)) + b"\n"
                out.write(line[:50])  # in two pieces: a reader may meet half a line
                out.write(line[50:])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        read = 0
        while not writing.done():
            found = session_messages(SESSION, config_dir=disk.config)
            assert [m.uuid for m in found] == [uuid_number(n + 1) for n in range(len(found))]
            assert len(found) >= read
            read = len(found)
            assert len(list_sessions(config_dir=disk.config)) == 1
        writing.result()
    assert len(session_messages(SESSION, config_dir=disk.config)) == last


def test_a_line_beyond_all_bounds_is_passed_over(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    disk.session([user(1, "a"), user(2, "x" * 5000, 1), user(3, "b", 1)], session_id=SESSION)
    found = session_messages(SESSION, config_dir=disk.config)
    assert [m.uuid for m in found] == [uuid_number(1), uuid_number(3)]


def test_a_long_chain_with_many_ends_is_read_in_linear_time(disk: Disk) -> None:
    chain = [{"type": "progress", "uuid": f"p{n}", "parentUuid": f"p{n - 1}"} for n in range(8000)]
    ends = [{"type": "progress", "uuid": f"e{n}", "parentUuid": "p7999"} for n in range(8000)]
    disk.session([{**user(1, "hi"), "uuid": "p-1"}, *chain, *ends], session_id=SESSION)
    assert [m.uuid for m in session_messages(SESSION, config_dir=disk.config)] == ["p-1"]


def test_what_is_not_there_reads_as_empty(disk: Disk) -> None:
    assert session_messages(SESSION, config_dir=disk.config) == []
    assert list_subagents(SESSION, config_dir=disk.config) == []
    disk.session([user(1, "hi")], session_id=SESSION)
    assert list_subagents(SESSION, config_dir=disk.config) == []
    assert subagent_messages(SESSION, "../../x", config_dir=disk.config) == []


def test_subagents_are_found_at_every_depth_with_what_their_side_files_say(disk: Disk) -> None:
    root = disk.session([user(1, "hi")], session_id=SESSION).with_suffix("") / "subagents"
    deep = root / "workflows" / "run"
    deep.mkdir(parents=True)
    (root / "agent-b.jsonl").write_bytes(dump(user(1, "b")))
    (root / "agent-a.jsonl").write_bytes(dump(user(1, "a")))
    (deep / "agent-c.jsonl").write_bytes(dump(user(1, "c", isSidechain=True)))
    side = {"agentType": "Explore", "toolUseId": "toolu_9", "parentAgentId": "a", "more": []}
    (deep / "agent-c.meta.json").write_text(json.dumps(side))
    (root / "agent-a.meta.json").write_text("{broken")
    (root / "loop").symlink_to(root)
    found = list_subagents(SESSION, config_dir=disk.config)
    assert [agent.agent_id for agent in found] == ["a", "b", "c"]
    assert (found[2].agent_type, found[2].parent_tool_use_id) == ("Explore", "toolu_9")
    assert found[0].agent_type is None
    (message,) = subagent_messages(SESSION, "c", config_dir=disk.config)
    assert (message.parent_tool_use_id, message.parent_agent_id) == ("toolu_9", "a")
    (root / "loop").unlink()
    assert sorted(official.list_subagents(SESSION)) == ["a", "b", "c"]
