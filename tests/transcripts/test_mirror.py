"""A transcript from what the CLI has mirrored: files by safe names, lines once, gaps noticed."""

from __future__ import annotations

import json

import msgspec
import pytest

from quarterdeck.transcripts.mirror import (
    OWN,
    MirroredLines,
    is_file_name,
    is_metadata,
    name_of,
    uuids_in,
)
from quarterdeck.wire.internal import TranscriptMirror

ID = "dd3fe57c-de56-4d5d-a4c7-68d1271c663d"
OTHER = "00000000-de56-4d5d-a4c7-68d1271c663d"
HOME = "/home/a/.claude/projects/-home-a-work"


def entry(uuid: str, parent: str | None = None, **more: object) -> bytes:
    return json.dumps({"type": "user", "uuid": uuid, "parentUuid": parent, **more}).encode()


def batch(*entries: bytes, path: str = f"{HOME}/{ID}.jsonl") -> TranscriptMirror:
    return TranscriptMirror(file_path=path, entries=tuple(map(msgspec.Raw, entries)))


def test_the_files_of_a_session_are_known_by_the_end_of_their_paths() -> None:
    assert name_of(f"{HOME}/{ID}.jsonl", ID) == OWN
    assert name_of(f"{HOME}/{ID}/subagents/agent-a1.jsonl", ID) == "subagents/agent-a1"
    nested = f"{HOME}/{ID}/subagents/workflows/w1/agent-a1.jsonl"
    assert name_of(nested, ID) == "subagents/workflows/w1/agent-a1"


@pytest.mark.parametrize(
    "path",
    [
        f"{HOME}/{OTHER}.jsonl",
        f"{HOME}/{OTHER}/subagents/agent-a1.jsonl",
        f"{HOME}/{ID}/subagents/../../../agent-a1.jsonl",
        f"{HOME}/{ID}/subagents/agent-../x.jsonl",
        f"{HOME}/{ID}/subagents/.ssh/agent-a.jsonl",
        f"{HOME}/{ID}/subagents//agent-a.jsonl",
        f"{HOME}/{ID}/subagents/agent-a\0.jsonl",
        f"{HOME}/{ID}/subagents/agent-a\n.jsonl",
        f"{HOME}/{ID}/subagents/authorized_keys.jsonl",
        f"{HOME}/{ID}/elsewhere/agent-a.jsonl",
        f"{HOME}/{ID}/agent-a.jsonl",
        f"{HOME}/{ID}/.jsonl",
        f"{HOME}/{ID}/subagents/agent-a1",
        f"{HOME}/{ID}/subagents/{'x/' * 7}agent-a.jsonl",
        f"{HOME}/{ID}/subagents/agent-{'a' * 200}.jsonl",
        "",
    ],
)
def test_any_other_path_is_no_file_of_the_session(path: str) -> None:
    assert name_of(path, ID) is None


def test_a_name_of_a_file_cannot_lead_elsewhere() -> None:
    assert is_file_name(OWN)
    assert is_file_name("subagents/agent-a")
    for name in ("..", "/etc/passwd", "subagents", "subagents/..", "subagents/../agent-a", "a/b"):
        assert not is_file_name(name)


def test_lines_come_once_and_as_they_are() -> None:
    lines = MirroredLines(ID)
    odd = b'{"uuid":"b",  "parentUuid":"a","n":1.50,"u":"\\u00e9"}'
    title = b'{"type":"custom-title"}'
    assert lines.take(batch(entry("a"), odd)) == (OWN, [entry("a"), odd])
    # A batch that comes again, with one line more; what has no id cannot be told from a new one.
    assert lines.take(batch(entry("a"), odd, entry("c", "b"), title)) == (
        OWN,
        [entry("c", "b"), title],
    )
    # The same message with other contents is what the CLI has written, too.
    assert lines.take(batch(entry("a", None, x=1))) == (OWN, [entry("a", None, x=1)])
    assert lines.take(batch(entry("z"), path=f"{HOME}/{OTHER}.jsonl")) == (OWN, [])
    assert lines.take(batch(b'{"uuid":\n"q"}')) == (OWN, []), "it would be two lines"
    assert lines.count == 5
    assert lines.missing == 0


def test_a_subagent_has_ids_of_its_own() -> None:
    lines = MirroredLines(ID)
    path = f"{HOME}/{ID}/subagents/agent-a.jsonl"
    assert lines.take(batch(entry("a"))) == (OWN, [entry("a")])
    mine = entry("a", "elsewhere")
    assert lines.take(batch(mine, path=path)) == ("subagents/agent-a", [mine])
    assert (lines.count, lines.missing) == (1, 0)


def test_a_message_whose_parent_never_came_is_a_gap() -> None:
    lines = MirroredLines(ID)
    lines.take(batch(entry("c", "b"), entry("d", "c")))
    assert lines.missing == 1
    lines.take(batch(entry("b")))
    assert lines.missing == 0


def test_what_is_no_message_has_no_id() -> None:
    assert uuids_in([entry("a"), b"{", b"[]", b'{"uuid":3}', b"\xff", entry("b")]) == {"a", "b"}
    assert is_metadata(b'{"type":"agent_metadata","agentType":"x"}')
    assert not is_metadata(b'{"type":"user","text":"agent_metadata"}')
