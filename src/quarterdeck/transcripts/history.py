"""The messages of a session.

Owns `session_messages`, `list_subagents` and `subagent_messages`. A file is read twice through one
open handle: once for the links between its entries, and then only the lines of the requested page.
So memory depends on the page and not on the file, and a file that grows or is deleted meanwhile
does no harm. `chain` selects the entries of the conversation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from quarterdeck.transcripts import layout
from quarterdeck.transcripts.chain import Entry, conversation, path_to
from quarterdeck.transcripts.layout import AnyPath
from quarterdeck.transcripts.lines import CHUNK, decode, lines_of, open_regular, repair, text
from quarterdeck.transcripts.model import SessionMessage, SubagentInfo, check_page

ENTRY_TYPES = frozenset({"user", "assistant", "progress", "system", "attachment"})
"""The types that are part of the tree; all other lines are notes about the session."""


class Line(msgspec.Struct, rename="camel"):
    """The members that the tree needs. Typed `object`, so that one wrong member does not affect the
    others.
    """

    type: object = None
    uuid: object = None
    parent_uuid: object = None
    session_id: object = None
    timestamp: object = None
    is_meta: object = None
    is_sidechain: object = None
    is_compact_summary: object = None
    team_name: object = None
    agent_id: object = None
    source: object = msgspec.field(default=None, name="sourceToolAssistantUUID")
    message: msgspec.Raw = msgspec.Raw(b"null")


class _Block(msgspec.Struct):
    type: object = None
    id: object = None
    tool_use_id: object = None


class _Body(msgspec.Struct):
    id: object = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class _SideFile(msgspec.Struct, rename="camel"):
    agent_type: object = None
    description: object = None
    tool_use_id: object = None
    parent_agent_id: object = None


LINE = msgspec.json.Decoder(Line)
_BODY = msgspec.json.Decoder(_Body)
_BLOCKS = msgspec.json.Decoder(list[_Block | str | int | float | bool | list[msgspec.Raw] | None])
_SIDE_FILE = msgspec.json.Decoder(_SideFile)


def session_messages(
    session_id: str,
    *,
    directory: AnyPath | None = None,
    limit: int | None = None,
    offset: int = 0,
    config_dir: AnyPath | None = None,
) -> list[SessionMessage]:
    """Read the conversation of a session, oldest message first; empty if there is none.

    It is the branch that was written last. Meta entries and entries of subagents are skipped; the
    summary of a compacted conversation is included. Blocks on the disk.
    """
    check_page(limit, offset)
    found = layout.find_session(session_id, directory, config_dir)
    return _read(found[0], _visible, limit, offset, None) if found else []


def list_subagents(
    session_id: str, *, directory: AnyPath | None = None, config_dir: AnyPath | None = None
) -> list[SubagentInfo]:
    """List the subagents that a session has started, by the place and name of their files."""
    found = layout.find_session(session_id, directory, config_dir)
    return subagents_of(found[0]) if found else []


def subagents_of(path: Path) -> list[SubagentInfo]:
    """As `list_subagents`, where the session's file is known."""
    return [_subagent(file) for file in _agent_files(path.with_suffix("") / "subagents")]


def subagent_messages(
    session_id: str,
    agent_id: str,
    *,
    directory: AnyPath | None = None,
    limit: int | None = None,
    offset: int = 0,
    config_dir: AnyPath | None = None,
) -> list[SessionMessage]:
    """Read the conversation of a subagent, oldest message first; empty if there is none.

    `agent_id` is one of `list_subagents`. Blocks on the disk.
    """
    check_page(limit, offset)
    for agent in list_subagents(session_id, directory=directory, config_dir=config_dir):
        if agent.agent_id == agent_id:
            return _read(Path(agent.path), _subagent_path, limit, offset, agent)
    return []


def entry_of(line: Line, start: int, size: int) -> Entry | None:
    """The place of a line in the tree; None if it has none."""
    kind, uuid = line.type, line.uuid
    if not isinstance(kind, str) or kind not in ENTRY_TYPES or not isinstance(uuid, str):
        return None
    body = decode(_BODY, bytes(line.message)) if kind in {"user", "assistant"} else None
    blocks = _blocks(body)
    from_user = kind == "user"
    calls = () if from_user else _ids(blocks, "tool_use", lambda block: block.id)
    answers = _ids(blocks, "tool_result", lambda block: block.tool_use_id) if from_user else ()
    return Entry(
        kind=kind,
        uuid=uuid,
        parent=text(line.parent_uuid),
        start=start,
        size=size,
        timestamp=text(line.timestamp) or "",
        aside=bool(line.is_meta or line.is_sidechain or line.team_name),
        sidechain=bool(line.is_sidechain),
        agent_id=text(line.agent_id),
        response=text(body.id) if body and not from_user else None,
        calls=calls,
        returns=from_user and any(block.type == "tool_result" for block in blocks),
        answers=answers,
        source=text(line.source),
    )


def _blocks(body: _Body | None) -> list[_Block]:
    items = decode(_BLOCKS, bytes(body.content)) if body else None
    return [item for item in items or () if isinstance(item, _Block)]


def _ids(blocks: list[_Block], kind: str, of: Callable[[_Block], object]) -> tuple[str, ...]:
    values = (of(block) for block in blocks if block.type == kind)
    return tuple(value for value in values if isinstance(value, str))


def _visible(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in conversation(entries) if entry.is_message and not entry.aside]


def _subagent_path(entries: Sequence[Entry]) -> list[Entry]:
    """A subagent's file holds one conversation, and its last message is the end of it."""
    leaf = next((entry for entry in reversed(entries) if entry.is_message), None)
    way = path_to(leaf, {entry.uuid: entry for entry in entries}) if leaf else []
    return [entry for entry in way if entry.is_message]


def _read(
    path: Path,
    choose: Callable[[Sequence[Entry]], list[Entry]],
    limit: int | None,
    offset: int,
    agent: SubagentInfo | None,
) -> list[SessionMessage]:
    try:
        with open_regular(path) as stream:
            entries = [
                entry
                for start, raw in lines_of(stream)
                if (line := decode(LINE, raw)) and (entry := entry_of(line, start, len(raw)))
            ]
            page = choose(entries)[offset : None if limit is None else offset + limit]
            return [message for entry in page if (message := _message(stream, entry, agent))]
    except OSError:
        return []


def _message(stream: BinaryIO, entry: Entry, agent: SubagentInfo | None) -> SessionMessage | None:
    stream.seek(entry.start)
    line = decode(LINE, repair(stream.read(entry.size)))
    if line is None:  # the file was overwritten, which the CLI never does
        return None
    return SessionMessage(
        type="user" if entry.kind == "user" else "assistant",
        uuid=entry.uuid,
        session_id=text(line.session_id) or "",
        message=line.message.copy(),
        timestamp=text(line.timestamp),
        is_compact_summary=line.is_compact_summary is True,
        parent_tool_use_id=agent.parent_tool_use_id if agent else None,
        parent_agent_id=agent.parent_agent_id if agent else None,
    )


def _agent_files(folder: Path) -> list[Path]:
    """Every subagent's file below `folder`; links to other folders are not followed."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders.sort()  # in place: os.walk uses this order
        agents = (name for name in names if name.startswith("agent-") and name.endswith(".jsonl"))
        found += [Path(parent) / name for name in sorted(agents)]
    return found


def _subagent(path: Path) -> SubagentInfo:
    try:
        with open_regular(path.with_suffix(".meta.json")) as stream:
            side = decode(_SIDE_FILE, stream.read(CHUNK))
    except OSError:
        side = None
    side = side or _SideFile()
    return SubagentInfo(
        agent_id=path.stem.removeprefix("agent-"),
        path=str(path),
        agent_type=text(side.agent_type),
        description=text(side.description),
        parent_tool_use_id=text(side.tool_use_id),
        parent_agent_id=text(side.parent_agent_id),
    )
