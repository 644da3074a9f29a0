"""Transcript entries become the lines that the CLI would have said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from quarterdeck.transcripts import to_stream_line, transcript_lines
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Assistant, User
from support.session_files import Disk, Json, assistant, dump, fresh_disk, trees, user, uuid_number


def _said(entry: Json) -> dict[str, object]:
    one = to_stream_line(dump(entry))
    assert one is not None
    found = json.loads(bytes(one.line))
    assert isinstance(found, dict)
    return found


def test_a_prompt_is_the_echo_that_the_cli_gives() -> None:
    one = to_stream_line(dump(user(1, "do it")))
    assert one is not None
    assert (one.kind, one.uuid) == ("prompt", uuid_number(1))
    assert json.loads(bytes(one.line)) == {
        "type": "user",
        "message": {"role": "user", "content": "do it"},
        "parent_tool_use_id": None,
        "session_id": uuid_number(0),
        "uuid": uuid_number(1),
        "timestamp": "2026-01-02T03:04:01.678Z",
        "isReplay": True,
    }
    message = from_cli(bytes(one.line))
    assert isinstance(message, User)
    assert message.is_replay


def test_an_answer_keeps_its_message_byte_for_byte() -> None:
    line = dump(assistant(2, "hello é"))
    one = to_stream_line(line)
    assert one is not None
    assert one.kind == "assistant"
    message = from_cli(bytes(one.line))
    assert isinstance(message, Assistant)
    assert bytes(message.message_json) in line
    assert message.text == "hello é"


def test_what_a_tool_gave_comes_with_its_result() -> None:
    content = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]
    said = _said(user(3, content, toolUseResult={"stdout": "x"}))
    assert said["tool_use_result"] == {"stdout": "x"}
    assert "isReplay" not in said


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("[Request interrupted by user]", {}),
        ("<local-command-stdout>out</local-command-stdout>", {}),
        ("the story so far", {"isCompactSummary": True}),
        ([{"type": "text", "text": "[Request interrupted by user for tool use]"}], {}),
    ],
)
def test_what_the_cli_put_in_is_no_prompt(content: object, more: Json) -> None:
    one = to_stream_line(dump(user(4, content, None, **more)))
    assert one is not None
    assert one.kind == "user"
    assert b"isReplay" not in bytes(one.line)
    assert (b'"isSynthetic":true' in bytes(one.line)) == bool(more)


@pytest.mark.parametrize(
    "line",
    [
        b"{cut",
        b"null",
        dump({"type": "user", "uuid": "u"}),
        dump({"type": "user", "uuid": 5, "message": {"content": "x"}}),
        dump({"type": "user", "uuid": "u", "message": "words"}),
        dump({"type": "system", "uuid": "u", "message": {"content": "x"}}),
        dump({**user(5, "meta"), "isMeta": True}),
        dump({**user(5, "of a subagent"), "isSidechain": True}),
    ],
)
def test_what_the_cli_would_not_say_says_nothing(line: bytes) -> None:
    assert to_stream_line(line) is None


def test_half_a_character_is_mended() -> None:
    line = dump(user(6, "x")).replace(b'"x"', b'"cut \\ud83d"')
    one = to_stream_line(line)
    assert one is not None
    message = from_cli(bytes(one.line))
    assert isinstance(message, User)
    assert message.text == "cut �"


def test_a_session_is_recalled_in_the_order_of_its_file_with_all_branches(disk: Disk) -> None:
    path = disk.session(
        [
            user(1, "first"),
            assistant(2, "one", 1),
            user(3, "given up", 2),
            user(4, "instead", 2),
            b"{garbage",
            user(4, "instead", 2),
            assistant(5, "two", 4),
        ]
    )
    said = transcript_lines(path.stem, config_dir=disk.config)
    assert [one.uuid for one in said] == [uuid_number(n) for n in (1, 2, 3, 4, 5)]


def test_a_subagent_stands_before_the_result_of_its_call(disk: Disk) -> None:
    result = [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "done"}]
    path = disk.session([user(1, "go"), assistant(2, "calls", 1), user(3, result, 2)])
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    inner = [
        user(11, "task", None, isSidechain=True),
        assistant(12, "mine", 11, isSidechain=True),
    ]
    (folder / "agent-a.jsonl").write_bytes(b"\n".join(map(dump, inner)))
    (folder / "agent-a.meta.json").write_bytes(dump({"toolUseId": "toolu_9"}))
    (folder / "agent-b.jsonl").write_bytes(dump(user(13, "whose?", None, isSidechain=True)))
    said = transcript_lines(path.stem, config_dir=disk.config)
    assert [one.uuid for one in said] == [uuid_number(n) for n in (1, 2, 11, 12, 3)]
    assert all(b'"parent_tool_use_id":"toolu_9"' in bytes(one.line) for one in said[2:4])


def test_a_session_that_is_not_there_says_nothing(disk: Disk) -> None:
    assert transcript_lines(uuid_number(77), config_dir=disk.config) == []


@given(trees())
def test_whatever_a_file_holds_can_be_read_as_lines_of_the_cli(lines: list[Json | bytes]) -> None:
    with fresh_disk() as disk:
        path = disk.session(lines)
        for one in transcript_lines(path.stem, config_dir=disk.config):
            assert b"\n" not in bytes(one.line)
            assert from_cli(bytes(one.line)).__class__ in {User, Assistant}
