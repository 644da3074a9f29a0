"""What a CLI has written down and nobody has heard: its transcript, read for the hub.

Owns the way from a line of the CLI's session file to the line that it would have said. A `Run`
stands above it, once its process is gone; below it is `agent.sessions`, which knows the files. Only
messages are in a transcript, and of subagents only what they gave back: no questions, no results of
turns. It blocks on the disk: call it from a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Raw

from quarterdeck.agent.sessions.layout import find_session, is_session_id, places
from quarterdeck.agent.sessions.lines import decode, lines_of, open_regular
from quarterdeck.domain.machines import Recall
from quarterdeck.domain.structs import ABSENT
from quarterdeck.runner.home import RunFacts

_SPOKEN = frozenset({"user", "assistant"})
_NEWEST = 20
"""Other transcripts to look into when the CLI has not told its session."""


class _Entry(msgspec.Struct, rename="camel"):
    """A line of a session file. Of unknown kinds: one wrong member must spoil no other."""

    type: object = None
    uuid: object = None
    session_id: object = None
    timestamp: object = None
    is_meta: object = None
    is_sidechain: object = None
    tool_use_result: Raw = ABSENT
    message: Raw = ABSENT


class _Line(msgspec.Struct, omit_defaults=True):
    """A message as the CLI says it."""

    type: str
    message: Raw
    parent_tool_use_id: None
    session_id: str
    uuid: str
    timestamp: str | msgspec.UnsetType = msgspec.UNSET
    tool_use_result: Raw | msgspec.UnsetType = msgspec.UNSET
    is_replay: bool | msgspec.UnsetType = msgspec.field(name="isReplay", default=msgspec.UNSET)


_entry = msgspec.json.Decoder(_Entry)


def config_dir(env: Mapping[str, str]) -> str | None:
    """The folder in which a CLI with this environment keeps its sessions."""
    if given := env.get("CLAUDE_CONFIG_DIR"):
        return given
    return f"{env['HOME']}/.claude" if env.get("HOME") else None


class Recollection:
    """The messages that the hub wants of one run, in the order in which they were written down."""

    def __init__(self, wanted: Recall, facts: RunFacts | None = None) -> None:
        self._wanted = wanted
        self._facts = facts
        self._lines: Iterator[bytes] | None = None
        self.cli_session: str | None = None
        """The session whose transcript it is, once something was read."""

    def some(self, size: int) -> list[bytes]:
        """The next lines, about so many bytes of them; none is the end. Blocks."""
        if self._lines is None:
            self._lines = self._all()
        found: list[bytes] = []
        while size > 0 and (line := next(self._lines, None)) is not None:
            found.append(line)
            size -= len(line)
        return found

    def _all(self) -> Iterator[bytes]:
        ours = {*self._wanted.known, *self._wanted.prompts}
        path = next((each for each in self._files() if _mentions(each, ours)), None)
        if path is None:
            return
        self.cli_session = path.stem
        begun = False
        told = set(self._wanted.known)
        for entry in _entries(path):
            uuid = entry.uuid
            begun = begun or uuid in ours
            if not begun or not isinstance(uuid, str) or uuid in told:
                continue
            told.add(uuid)
            if (line := self._line(entry, uuid)) is not None:
                yield line

    def _files(self) -> Iterator[Path]:
        """The session's file; and others of the folder, if the CLI had not told its session yet."""
        facts = self._facts
        if facts is None or facts.config is None:
            return
        named = self._wanted.cli_session
        if named is not None and is_session_id(named):
            found = find_session(named, facts.directory, facts.config)
            if found is not None:
                yield found[0]
        unheard = set(self._wanted.prompts) - set(self._wanted.known)
        if not unheard:
            return
        for folder, _ in places(facts.directory, include_worktrees=False, config_dir=facts.config):
            files = [path for path in folder.glob("*.jsonl") if is_session_id(path.stem)]
            yield from sorted(files, key=_changed, reverse=True)[:_NEWEST]

    def _line(self, entry: _Entry, uuid: str) -> bytes | None:
        """The entry as it would have been said; None for one that the CLI keeps to itself."""
        if entry.is_meta or entry.is_sidechain or not entry.message:
            return None
        line = _Line(
            type=str(entry.type),
            message=entry.message,
            parent_tool_use_id=None,
            session_id=self.cli_session or "",
            uuid=uuid,
        )
        if isinstance(entry.timestamp, str):
            line.timestamp = entry.timestamp
        if entry.tool_use_result:
            line.tool_use_result = entry.tool_use_result
        if uuid in self._wanted.prompts:
            line.is_replay = True
        return msgspec.json.encode(line)


def _mentions(path: Path, uuids: set[str]) -> bool:
    return any(entry.uuid in uuids for entry in _entries(path))


def _entries(path: Path) -> Iterator[_Entry]:
    """The messages of a file, as far as it can be read."""
    try:
        with open_regular(path) as stream:
            for _, raw in lines_of(stream):
                entry = decode(_entry, raw)
                if entry is not None and entry.type in _SPOKEN and isinstance(entry.uuid, str):
                    yield entry
    except OSError:
        return


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
