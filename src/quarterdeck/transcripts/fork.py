"""Copy a session into a new one.

Owns `fork_session`. Every entry gets a new uuid and records its old one; its text is copied
unchanged. The new file is written under another name and then moved into place, so that no reader
sees a part of it. Subagents and the history of files are not copied, as with the CLI.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts.catalogue import title_of
from quarterdeck.transcripts.chain import Entry
from quarterdeck.transcripts.edit import open_project, whole_characters
from quarterdeck.transcripts.history import LINE, entry_of
from quarterdeck.transcripts.layout import AnyPath, check_id, projects_dir, require_session
from quarterdeck.transcripts.lines import decode, lines_of, open_regular

_LEFT_BEHIND = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")
"""Members that tie an entry to the session it comes from."""


class _Replacements(msgspec.Struct, tag="content-replacement", rename="camel", kw_only=True):
    """The CLI's record of texts that it has moved out of the session; entries refer to it."""

    session_id: str
    replacements: list[msgspec.Raw]
    uuid: str = ""
    timestamp: str = ""


class _Title(msgspec.Struct, tag="custom-title", rename="camel", kw_only=True):
    session_id: str
    custom_title: str
    uuid: str
    timestamp: str


class _ForkedFrom(msgspec.Struct, rename="camel"):
    session_id: str
    message_uuid: str


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_REPLACEMENTS = msgspec.json.Decoder(_Replacements)


def fork_session(
    session_id: str,
    *,
    up_to_message_id: str | None = None,
    title: str | None = None,
    directory: AnyPath | None = None,
    config_dir: AnyPath | None = None,
) -> str:
    """Copy a session into a new one beside it, and give back the new one's id.

    With `up_to_message_id` the copy ends with that message. Without a `title` it is named after
    the session, with " (fork)" behind. Blocks on the disk.
    """
    check_id(session_id)
    if up_to_message_id is not None:
        check_id(up_to_message_id, "message id")
    path = require_session(session_id, directory, config_dir)
    chosen = whole_characters(title).strip() if title else ""
    chosen = chosen or f"{title_of(path) or 'Forked session'} (fork)"
    with open_regular(path, follow=False) as stream:
        entries, replacements = _survey(stream, session_id)
        if up_to_message_id is not None:
            entries = _cut(entries, up_to_message_id, session_id)
        if not any(entry.kind != "progress" for entry in entries):
            raise UsageError(f"session {session_id} has no messages to fork")
        fork = _Fork(stream, session_id, entries)
        _write(path, fork.lines(replacements, chosen), fork.session_id, projects_dir(config_dir))
    return fork.session_id


def _survey(stream: BinaryIO, session_id: str) -> tuple[list[Entry], list[msgspec.Raw]]:
    """All entries of the session itself, and the replacements that were noted for it."""
    entries: list[Entry] = []
    replacements: list[msgspec.Raw] = []
    for start, raw in lines_of(stream):
        line = decode(LINE, raw)
        if line is None:
            continue
        if line.type == "content-replacement":
            note = decode(_REPLACEMENTS, raw)
            if note and note.session_id == session_id:
                replacements += [item.copy() for item in note.replacements]
        elif (entry := entry_of(line, start, len(raw))) and not entry.sidechain:
            entries.append(entry)
    return entries, replacements


def _cut(entries: list[Entry], last: str, session_id: str) -> list[Entry]:
    for number, entry in enumerate(entries, 1):
        if entry.uuid == last:
            return entries[:number]
    raise UsageError(f"no message {last} in session {session_id}")


class _Fork:
    def __init__(self, stream: BinaryIO, source: str, entries: list[Entry]) -> None:
        self.session_id = str(uuid4())
        self._stream = stream
        self._source = source
        self._kept = [entry for entry in entries if entry.kind != "progress"]
        self._by_uuid: Mapping[str, Entry] = {entry.uuid: entry for entry in entries}
        self._new: Mapping[str, str] = {uuid: str(uuid4()) for uuid in self._by_uuid}
        self._now = datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

    def lines(self, replacements: list[msgspec.Raw], title: str) -> Iterator[bytes]:
        """The lines of the new file. The title comes last, where readers look for it first."""
        for entry in self._kept:
            yield self._line(entry, newest=entry is self._kept[-1])
        marks = {"session_id": self.session_id, "timestamp": self._now}
        if replacements:
            note = _Replacements(replacements=replacements, uuid=str(uuid4()), **marks)
            yield msgspec.json.encode(note)
        yield msgspec.json.encode(_Title(custom_title=title, uuid=str(uuid4()), **marks))

    def _line(self, entry: Entry, *, newest: bool) -> bytes:
        self._stream.seek(entry.start)
        members = decode(_OBJECT, self._stream.read(entry.size))
        if members is None:
            raise UsageError(f"session {self._source} was changed while it was copied")
        for name in _LEFT_BEHIND:
            members.pop(name, None)
        members["uuid"] = _raw(self._new[entry.uuid])
        members["parentUuid"] = _raw(self._parent(entry))
        members["sessionId"] = _raw(self.session_id)
        members["isSidechain"] = _raw(False)
        members["forkedFrom"] = _raw(_ForkedFrom(self._source, entry.uuid))
        if logical := members.get("logicalParentUuid"):
            members["logicalParentUuid"] = _raw(self._new.get(_uuid_in(logical)))
        if newest or "timestamp" not in members:
            # The CLI resumes at the entry with the newest time.
            members["timestamp"] = _raw(self._now)
        return msgspec.json.encode(members)

    def _parent(self, entry: Entry) -> str | None:
        """The new name of the nearest ancestor that is copied too."""
        seen: set[str] = set()
        parent = self._by_uuid.get(entry.parent or "")
        while parent is not None and parent.kind == "progress" and parent.uuid not in seen:
            seen.add(parent.uuid)
            parent = self._by_uuid.get(parent.parent or "")
        return self._new[parent.uuid] if parent is not None and parent.kind != "progress" else None


def _raw(value: str | bool | _ForkedFrom | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _uuid_in(value: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(value, type=str)
    except ValueError:
        return ""


def _write(source: Path, lines: Iterator[bytes], session_id: str, projects: Path) -> None:
    """Write a session beside `source`, readable by its owner only: it may hold anything."""
    folder = open_project(source, projects)
    final = f"{session_id}.jsonl"
    draft = f"{final}.part"
    try:
        handle = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder
        )
        try:
            with os.fdopen(handle, "wb") as out:
                out.writelines(line + b"\n" for line in lines)
            os.rename(draft, final, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(draft, dir_fd=folder)
            raise
    finally:
        os.close(folder)
