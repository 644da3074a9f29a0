"""A transcript from the lines that the CLI has mirrored. Pure.

Owns which file of a session a mirrored batch belongs to, which of its lines are new, and whether
the whole conversation is there. The names in a batch come from an agent's machine: only their last
parts are read, and a name that is not of the expected shape belongs to no file. Nothing here
touches a disk: `hub.moves` reads batches from the journal, and `runner.restores` writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from quarterdeck.wire.internal import TranscriptMirror

OWN = ""
"""The name of a session's own file. Those of its subagents are `subagents/…/agent-ID`."""
METADATA = "agent_metadata"
"""An entry that the CLI keeps beside the file of a subagent, and not in it."""
LONGEST_NAME = 400
MOST_PARTS = 6

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_AGENT = re.compile(r"agent-[A-Za-z0-9_-]{1,128}")


class _Entry(msgspec.Struct, rename="camel"):
    """What is read of a line of a transcript."""

    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None


def is_file_name(name: str) -> bool:
    """Whether this names a file of a session: its own one, or that of a subagent."""
    if name == OWN:
        return True
    first, *between = name.split("/")
    if first != "subagents" or not 1 <= len(between) <= MOST_PARTS or len(name) > LONGEST_NAME:
        return False
    return all(map(_PART.fullmatch, between[:-1])) and bool(_AGENT.fullmatch(between[-1]))


def name_of(path: str, session: str) -> str | None:
    """The name of the file at a path of the CLI's machine; None if it is none of the session."""
    parts = path.split("/")
    if parts[-1] == f"{session}.jsonl":
        return OWN
    if session not in parts or not path.endswith(".jsonl"):
        return None
    below = parts[len(parts) - parts[::-1].index(session) :]
    name = "/".join(below).removesuffix(".jsonl")
    return name if name != OWN and is_file_name(name) else None


def is_metadata(line: bytes) -> bool:
    """Whether a line of a subagent is kept beside its file."""
    return METADATA.encode() in line[:200] and _read(line).type == METADATA


class MirroredLines:
    """Takes the batches of one session, in the order in which they were journalled."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._known: dict[tuple[str, str], set[int]] = {}
        self._parents: set[str] = set()
        self.count = 0
        """The lines of the session's own file."""

    def take(self, batch: TranscriptMirror) -> tuple[str, list[bytes]]:
        """The name of a batch's file, and its lines that are new.

        A message that came before, byte for byte, came twice: a CLI that connects again repeats
        itself. Lines without an id are taken as they come.
        """
        name = name_of(batch.file_path, self._session)
        if name is None:
            return OWN, []
        lines = [bytes(entry) for entry in batch.entries]
        fresh = [line for line in lines if self._is_new(name, line)]
        if name == OWN:
            self.count += len(fresh)
        return name, fresh

    def _is_new(self, name: str, line: bytes) -> bool:
        if b"\n" in line or b"\r" in line:
            return False  # it would be several lines of the file; the CLI writes none of these
        entry = _read(line)
        if entry.uuid is None:
            return True
        if name == OWN and entry.parent_uuid is not None:
            self._parents.add(entry.parent_uuid)
        sent = self._known.setdefault((name, entry.uuid), set())
        if hash(line) in sent:
            return False
        sent.add(hash(line))
        return True

    @property
    def missing(self) -> int:
        """How many messages of the conversation others refer to that are not there."""
        return sum((OWN, parent) not in self._known for parent in self._parents)


def uuids_in(lines: Iterable[bytes]) -> set[str]:
    """The ids of the messages in lines of a transcript."""
    return {uuid for line in lines if (uuid := _read(line).uuid) is not None}


def _read(line: bytes) -> _Entry:
    try:
        return msgspec.json.decode(line, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Entry()
