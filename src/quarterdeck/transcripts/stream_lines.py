"""The entries of a session file, as the lines that the CLI would have written to its stream.

`to_stream_line` converts one entry and is pure; `transcript_lines` converts a whole session. The
hub uses it for messages that it did not receive: a session that ran in a terminal, or the last
messages of a CLI whose machine failed. The caller drops what it has already, by uuid.

Unlike `history`, this includes every branch: prompts that were edited, and everything before a
compaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.transcripts import layout
from quarterdeck.transcripts.history import subagents_of
from quarterdeck.transcripts.layout import AnyPath
from quarterdeck.transcripts.lines import decode, lines_of, open_regular, repair, start_of, text

_BY_THE_CLI = (
    "[Request interrupted by user",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
)
"""Prefixes of texts that the CLI writes as the user; no person typed them."""


class TranscriptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `line` is the complete line of the stream, one JSON object.

    A `prompt` was typed by a person; its line is the echo that `--replay-user-messages` asks for.
    `user` is the result of a tool, or a text by the CLI.
    """

    kind: Literal["prompt", "user", "assistant"]
    uuid: str
    line: Raw
    timestamp: str | None = None
    parent_tool_use_id: str | None = None
    """The call that started the subagent that it is of."""


class _Entry(msgspec.Struct, rename="camel"):
    """The members that are needed. Typed `object`, so that one wrong member does not affect the
    others.
    """

    type: object = None
    uuid: object = None
    session_id: object = None
    timestamp: object = None
    is_meta: object = None
    is_sidechain: object = None
    is_compact_summary: object = None
    is_api_error_message: object = None
    error: object = None
    message: Raw = ABSENT
    tool_use_result: Raw = ABSENT


class _Block(msgspec.Struct):
    type: object = None
    text: object = None
    tool_use_id: object = None


class _Body(msgspec.Struct):
    content: str | list[_Block | str | int | float | bool | list[Raw] | None] | None = None


class _Common(Value, tag_field="type", omit_defaults=False):
    message: Raw
    parent_tool_use_id: str | None
    session_id: str
    uuid: str


class _Optional(Value):
    """Members that are often absent."""

    timestamp: str | None = None
    error: str | None = None
    is_api_error_message: bool = False
    tool_use_result: Raw = ABSENT
    is_replay: bool = msgspec.field(name="isReplay", default=False)
    is_synthetic: bool = msgspec.field(name="isSynthetic", default=False)


class _Assistant(_Common, tag="assistant"):
    pass


class _User(_Common, tag="user"):
    pass


_ENTRY = msgspec.json.Decoder(_Entry)
_BODY = msgspec.json.Decoder(_Body)


def to_stream_line(line: bytes, *, parent_tool_use_id: str | None = None) -> TranscriptLine | None:
    """The stream line of an entry of a session file; None for an entry that is not in the stream.

    `parent_tool_use_id` is the call that started the subagent of that file. Never raises: a cut or
    damaged line gives None.
    """
    entry = decode(_ENTRY, repair(line))  # lone surrogates are replaced
    if entry is None or not (uuid := text(entry.uuid)) or entry.is_meta:
        return None
    if bool(entry.is_sidechain) != (parent_tool_use_id is not None):
        return None
    body = decode(_BODY, bytes(entry.message)) if entry.message else None
    if body is None:
        return None
    said = {"uuid": uuid, "session_id": text(entry.session_id) or ""}
    timestamp = text(entry.timestamp)
    match entry.type:
        case "assistant":
            kind: Literal["prompt", "user", "assistant"] = "assistant"
            first: _Common = _Assistant(
                message=entry.message, parent_tool_use_id=parent_tool_use_id, **said
            )
            rest = _Optional(
                timestamp=timestamp,
                error=text(entry.error),
                is_api_error_message=entry.is_api_error_message is True,
            )
        case "user":
            first = _User(message=entry.message, parent_tool_use_id=parent_tool_use_id, **said)
            summary = entry.is_compact_summary is True
            typed = parent_tool_use_id is None and not summary and _is_typed(body)
            kind = "prompt" if typed else "user"
            rest = _Optional(
                timestamp=timestamp,
                tool_use_result=entry.tool_use_result,
                is_replay=typed,
                is_synthetic=summary,
            )
        case _:
            return None
    joined = _merge_objects(msgspec.json.encode(first), msgspec.json.encode(rest))
    return TranscriptLine(
        kind=kind,
        uuid=uuid,
        line=joined,
        timestamp=timestamp,
        parent_tool_use_id=parent_tool_use_id,
    )


def transcript_lines(
    session_id: str,
    *,
    directory: AnyPath | None = None,
    config_dir: AnyPath | None = None,
    since: Collection[str] = (),
) -> list[TranscriptLine]:
    """All messages of a session, in the order of its file; empty if there is none.

    Messages of a subagent come before the result of the call that started it. If that call is
    unknown, they are omitted. Blocks on the disk; never raises for a damaged file.

    `since` are uuids near the end of a long session: each file that has one of them is read from
    the first of these on.
    """
    found = layout.find_session(session_id, directory, config_dir)
    return transcript_lines_of(found[0], since) if found else []


def transcript_lines_of(path: Path, since: Collection[str] = ()) -> list[TranscriptLine]:
    """As `transcript_lines`, where the session's file is known."""
    waiting: dict[str, list[TranscriptLine]] = {}
    for agent in subagents_of(path):
        if parent := agent.parent_tool_use_id:
            waiting.setdefault(parent, []).extend(_read(Path(agent.path), parent, since))
    said: list[TranscriptLine] = []
    for one in _read(path, None, since):
        if waiting and one.kind == "user":
            for call in [call for call in waiting if f'"{call}"'.encode() in bytes(one.line)]:
                said += waiting.pop(call)
        said.append(one)
    return said + [one for rest in waiting.values() for one in rest]


def _read(
    path: Path, parent_tool_use_id: str | None, since: Collection[str]
) -> Iterator[TranscriptLine]:
    """A file's messages, each once: a CLI that was resumed may have written one again."""
    seen: set[str] = set()
    try:
        with open_regular(path) as stream:
            if since:
                stream.seek(start_of(stream, since))
            for _, line in lines_of(stream):
                one = to_stream_line(line, parent_tool_use_id=parent_tool_use_id)
                if one is not None and one.uuid not in seen:
                    seen.add(one.uuid)
                    yield one
    except OSError:
        return


def _is_typed(body: _Body) -> bool:
    """Whether a person wrote this: it brings no result back, and does not begin as the CLI does."""
    match body.content:
        case str(said):
            return not said.startswith(_BY_THE_CLI)
        case list(items):
            blocks = [item for item in items if isinstance(item, _Block)]
            if any(block.type == "tool_result" for block in blocks):
                return False
            texts = (block.text for block in blocks if isinstance(block.text, str))
            return not next(texts, "").startswith(_BY_THE_CLI)
        case _:
            return False


def _merge_objects(first: bytes, rest: bytes) -> Raw:
    """The members of two objects in one; the first has some."""
    return Raw(first if rest == b"{}" else first[:-1] + b"," + rest[1:])
