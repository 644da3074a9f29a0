"""Session files for tests: built as the CLI would write them, or drawn at random."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

import pytest
from hypothesis import strategies as st

Json = Mapping[str, object]


def uuid_number(number: int) -> str:
    """The same uuid for the same number, in every run."""
    return str(UUID(int=0x4000_8000_0000_0000_0000 + (number << 96), version=4))


def dump(line: Json | str | bytes) -> bytes:
    """One line of a session file: JSON as the CLI writes it, or what else a test wants there."""
    match line:
        case bytes():
            return line
        case str():
            return line.encode()
        case _:
            return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()


class Disk:
    """A configuration folder with sessions in it."""

    def __init__(self, root: Path) -> None:
        self.config = root / "config"
        self.projects = self.config / "projects"
        self.projects.mkdir(parents=True)
        self.work = root / "work"
        self.work.mkdir()
        self._age = 1_700_000_000

    def folder(self, name: str = "-work") -> Path:
        folder = self.projects / name
        folder.mkdir(exist_ok=True)
        return folder

    def session(
        self,
        lines: Iterable[Json | str | bytes],
        *,
        session_id: str | None = None,
        folder: Path | None = None,
        end: bytes = b"\n",
    ) -> Path:
        """Write a session; each is newer than the one before."""
        path = (folder or self.folder()) / f"{session_id or uuid4()}.jsonl"
        path.write_bytes(b"\n".join(dump(line) for line in lines) + end)
        self._age += 60
        os.utime(path, (self._age, self._age))
        return path


@contextmanager
def fresh_disk() -> Iterator[Disk]:
    """A new `Disk` for each example of a property; the official SDK finds it as well."""
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        disk = Disk(Path(root))
        patch.setenv("CLAUDE_CONFIG_DIR", str(disk.config))
        yield disk


def user(number: int, content: object, parent: int | None = None, **more: object) -> Json:
    return _entry("user", number, parent, {"role": "user", "content": content}, more)


def assistant(number: int, text: str, parent: int | None = None, **more: object) -> Json:
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "id": f"msg_{number}", "content": content}
    return _entry("assistant", number, parent, message, more)


def _entry(
    kind: str, number: int, parent: int | None, message: Json, more: Mapping[str, object]
) -> Json:
    return {
        "parentUuid": None if parent is None else uuid_number(parent),
        "isSidechain": False,
        "cwd": "/somewhere",
        "sessionId": uuid_number(0),
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": uuid_number(number),
        "timestamp": f"2026-01-02T03:04:{number % 60:02d}.678Z",
        **more,
    }


# ---- drawn at random: trees of every shape, such as only a damaged disk would hold ----

_calls = st.sampled_from(["call_a", "call_b", "call_c"])
_blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(["hello", "", "é😀"])),
    st.builds(lambda call: {"type": "tool_use", "id": call, "input": {}}, _calls),
    st.builds(lambda call: {"type": "tool_result", "tool_use_id": call}, _calls),
    st.sampled_from([{"type": "tool_result"}, {"type": "tool_use", "id": 7}, "loose", None, 3]),
)
_contents = st.one_of(st.sampled_from(["hi", "", None, 5]), st.lists(_blocks, max_size=3))
_messages = st.one_of(
    st.fixed_dictionaries(
        {"content": _contents},
        optional={"id": st.sampled_from(["msg_1", "msg_2", "", 4]), "role": st.just("user")},
    ),
    st.sampled_from([None, "words", [1]]),
)
_flag = st.sampled_from([True, False])


@st.composite
def trees(draw: st.DrawFn, *, rings: bool = True) -> list[Json | bytes]:
    """The lines of a session whose entries hang together in any way, with rubbish in between.

    Without `rings` an entry's parent always stands before it.
    """
    size = draw(st.integers(1, 12))
    lines: list[Json | bytes] = []
    for number in range(1, size + 1):
        last = size if rings else number - 1
        parent = draw(st.one_of(st.just(number - 1), st.integers(0, last)))
        optional = {
            "isMeta": _flag,
            "isSidechain": _flag,
            "teamName": st.just("team"),
            "agentId": st.just("agent"),
            "isCompactSummary": _flag,
            "logicalParentUuid": st.integers(1, size).map(uuid_number),
            "sourceToolAssistantUUID": st.integers(1, size).map(uuid_number),
            "slug": st.just("slug"),
            "timestamp": st.integers(0, 3).map(lambda n: f"2026-01-02T03:04:0{n}.000Z"),
        }
        kinds = ["user", "assistant"] * 3 + ["progress", "system", "attachment"]
        entry: dict[str, object] = {
            "type": draw(st.sampled_from(kinds)),
            "uuid": uuid_number(number),
            "parentUuid": uuid_number(parent) if parent else None,
            "sessionId": uuid_number(0),
            "message": draw(_messages),
        }
        names = draw(st.sets(st.sampled_from(sorted(optional)), max_size=2))
        entry |= {name: draw(optional[name]) for name in sorted(names)}
        lines.append(entry)
        lines.extend(draw(st.lists(_rubbish, max_size=1)))
    return lines


@st.composite
def tool_trees(draw: st.DrawFn) -> list[Json]:
    """Nothing but calls and results, hung together in any way: parallel turns, and worse."""
    size = draw(st.integers(4, 10))
    lines: list[Json] = []
    for number in range(1, size + 1):
        parent = draw(st.integers(max(0, number - 3), number - 1))
        call = draw(_calls)
        more: dict[str, object] = draw(st.sampled_from([{}, {}, {}, {"agentId": "agent"}]))
        if draw(_flag):
            use = {"type": "tool_use", "id": call, "input": {}}
            response = draw(st.sampled_from(["msg_1", "msg_2"]))
            entry = assistant(number, "", parent or None, **more)
            message = {"role": "assistant", "id": response, "content": [use]}
            lines.append({**entry, "message": message})
        else:
            if draw(_flag):
                more = {**more, "sourceToolAssistantUUID": uuid_number(draw(st.integers(1, size)))}
            result = [{"type": "tool_result", "tool_use_id": call}]
            lines.append(user(number, result, parent or None, **more))
    return lines


_rubbish = st.sampled_from(
    [
        b"{broken",
        b"[1,2]",
        b"null",
        b"   ",
        b'{"type":"user"}',
        b'{"type":"user","uuid":5}',
        b'{"type":"summary","summary":"S","leafUuid":"x"}',
        b'{"type":"content-replacement","sessionId":"' + uuid_number(0).encode() + b'"'
        b',"replacements":[{"kind":"x","n":1.50}]}',
    ]
)

_notes = st.one_of(
    st.builds(
        lambda t: {"type": "custom-title", "customTitle": t}, st.sampled_from(["Ä", "", "b"])
    ),
    st.builds(lambda t: {"type": "ai-title", "aiTitle": t}, st.sampled_from(["made up", ""])),
    st.builds(lambda t: {"type": "tag", "tag": t}, st.sampled_from(["red", "", 'q"uote'])),
    st.builds(lambda t: {"type": "last-prompt", "lastPrompt": t}, st.sampled_from(["now", ""])),
    st.just({"type": "summary", "summary": "the summary"}),
    st.just({"type": "file-history-snapshot", "snapshot": {"timestamp": "2025-05-05T05:05:05Z"}}),
    st.just({"type": "mode", "isSidechain": True}),
    st.just({"type": "system", "gitBranch": "topic", "timestamp": "yesterday"}),
)
_prompts = st.sampled_from(
    [
        "Please\nhelp ",
        "",
        "x" * 250,
        "w " * 150,
        "<command-name>/clear</command-name> rest",
        "<local-command-stdout>out",
        "<tick>",
        "[Request interrupted by user for tool use] and more",
        "<ide_selection>a\nb</ide_selection> ",
        "<ide_selection>a</ide_selection> typed",
        [{"type": "text", "text": "<goal>"}, {"type": "text", "text": "in a block"}],
        [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "never"}],
        [{"type": "image", "source": {"data": "x" * 50}}],
        ["loose", None, 5],
        None,
    ]
)


@st.composite
def listed(draw: st.DrawFn) -> list[Json | bytes]:
    """The lines of a session as a listing meets it: notes, prompts, now and then a huge line."""
    lines: list[Json | bytes] = []
    for number in range(1, draw(st.integers(1, 8)) + 1):
        flag = draw(st.sampled_from(["", "", "isMeta", "isCompactSummary"]))
        flags: dict[str, object] = {flag: True} if flag else {}
        choices: list[st.SearchStrategy[Json | bytes]] = [
            _notes,
            st.just(user(number, draw(_prompts), number - 1 or None, **flags)),
            st.integers(60_000, 70_000).map(lambda size: assistant(size, "y" * size)),
            st.sampled_from([b"{broken", b"", b'"text"']),
        ]
        lines.append(draw(st.one_of(choices)))
    return lines
