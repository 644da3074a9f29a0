"""The list of sessions.

Owns `list_sessions` and `session_info`. Both are meant for folders with thousands of sessions of
many megabytes: a file is stat'ed, its first and last 64 KiB are read, and only as many files are
read as the page needs. Files that cannot be read or parsed are skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import msgspec

from quarterdeck.transcripts import layout
from quarterdeck.transcripts.layout import AnyPath
from quarterdeck.transcripts.lines import CHUNK, decode, open_regular, repair, text
from quarterdeck.transcripts.model import SessionInfo, check_page

_LONGEST_PROMPT = 200
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>")
_NOT_TYPED_START = ("<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>")
_NOT_TYPED_WHOLE = ("ide_opened_file", "ide_selection")
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Snapshot(msgspec.Struct):
    timestamp: object = None


class _Line(msgspec.Struct, rename="camel"):
    """The members that a listing needs. Typed `object`, so that one wrong member does not affect
    the others.
    """

    type: object = None
    is_sidechain: object = None
    is_meta: object = None
    is_compact_summary: object = None
    custom_title: object = None
    ai_title: object = None
    last_prompt: object = None
    summary: object = None
    git_branch: object = None
    cwd: object = None
    tag: object = None
    timestamp: object = None
    snapshot: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()


class _Block(msgspec.Struct):
    type: object = None
    text: object = None


class _Body(msgspec.Struct):
    content: str | list[_Block | str | int | float | bool | list[msgspec.Raw] | None]


_LINE = msgspec.json.Decoder(_Line)
_BODY = msgspec.json.Decoder(_Body)
_SNAPSHOT = msgspec.json.Decoder(_Snapshot)
_TEXT = msgspec.json.Decoder(str)

_SCRAPED = ("customTitle", "aiTitle", "lastPrompt", "summary", "gitBranch", "cwd", "timestamp")
_SCRAPE = re.compile(
    rb'"(' + "|".join(_SCRAPED).encode() + rb')": ?("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL
)
_LINE_NAMES = dict(zip(_Line.__struct_encode_fields__, _Line.__struct_fields__, strict=True))
_SIDECHAIN = re.compile(rb'"isSidechain": ?true')


def list_sessions(
    directory: AnyPath | None = None,
    *,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
    config_dir: AnyPath | None = None,
) -> list[SessionInfo]:
    """List the sessions of the project in `directory`, or of all projects, newest first.

    With `include_worktrees` the sessions of all git worktrees of its repository are listed too.
    Files of subagents, and files without a prompt or title, are skipped. Blocks on the disk.
    """
    check_page(limit, offset)
    folders = layout.session_folders(
        directory, include_worktrees=include_worktrees, config_dir=config_dir
    )
    found = _newest_first(file for folder, path in folders for file in _files(folder, path))
    return list(islice(_readable(found), offset, None if limit is None else offset + limit))


def session_info(
    session_id: str,
    *,
    directory: AnyPath | None = None,
    config_dir: AnyPath | None = None,
) -> SessionInfo | None:
    """Look up one session; None if it does not exist, or has no prompt or title."""
    found = layout.find_session(session_id, directory, config_dir)
    return _info(found[0], found[1]) if found else None


def title_of(path: Path) -> str | None:
    """The title of a session, else its first prompt. A copy is named after it."""
    ends = _ends(path)
    return _title(ends) or _first_prompt(ends.head) if ends else None


class _File(msgspec.Struct, frozen=True):
    path: Path
    project: str | None
    modified: int


def _files(folder: Path, project: str | None) -> list[_File]:
    found: list[_File] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and layout.is_session_id(entry.name[:-6]):
                    modified = _modified_ns(entry)
                    if modified is not None:
                        found.append(_File(folder / entry.name, project, modified))
    except OSError:
        return found
    return found


def _modified_ns(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat().st_mtime_ns
    except OSError:  # deleted since, or a link to nowhere
        return None


def _newest_first(files: Iterable[_File]) -> list[_File]:
    return sorted(files, key=lambda file: (-file.modified, file.path.name, file.path))


def _readable(files: Iterable[_File]) -> Iterable[SessionInfo]:
    """Each session once: a session in two projects is taken from the newest file."""
    seen: set[str] = set()
    for file in files:
        if file.path.stem not in seen and (info := _info(file.path, file.project)):
            seen.add(file.path.stem)
            yield info


class _Ends(msgspec.Struct, frozen=True):
    """The first and the last lines of a file; of a short one, all lines are both."""

    head: list[_Line]
    tail: list[_Line]
    modified: int
    size: int


def _ends(path: Path) -> _Ends | None:
    try:
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
            head = tail = stream.read(CHUNK)
            if status.st_size > CHUNK:
                stream.seek(status.st_size - CHUNK)
                tail = stream.read(CHUNK)
    except OSError:
        return None
    first = [_read(line) for line in head.split(b"\n") if line.strip()]
    last = first if tail is head else [_read(line) for line in tail.split(b"\n") if line.strip()]
    return _Ends(first, last, status.st_mtime_ns // 1_000_000, status.st_size) if first else None


def _info(path: Path, project: str | None) -> SessionInfo | None:
    ends = _ends(path)
    if ends is None or ends.head[0].is_sidechain is True:
        return None
    title, prompt = _title(ends), _first_prompt(ends.head)
    summary = title or _last(ends.tail, "last_prompt") or _last(ends.tail, "summary") or prompt
    if not summary:
        return None
    return SessionInfo(
        session_id=path.stem,
        summary=summary,
        last_modified=ends.modified,
        file_size=ends.size,
        path=str(path),
        custom_title=title,
        first_prompt=prompt,
        git_branch=_last(ends.tail, "git_branch") or _first(ends.head, "git_branch"),
        cwd=_first(ends.head, "cwd") or project,
        tag=_last([line for line in ends.tail if line.type == "tag"], "tag"),
        created_at=_milliseconds(_first(ends.head, "timestamp")),
    )


def _title(ends: _Ends) -> str | None:
    """The newest title by a person, else the newest by the model."""
    return (
        _last(ends.tail, "custom_title")
        or _last(ends.head, "custom_title")
        or _last(ends.tail, "ai_title")
        or _last(ends.head, "ai_title")
    )


def _read(line: bytes) -> _Line:
    """A decoded line. For a cut or damaged line, the plain texts that can be found in it."""
    if read := decode(_LINE, line):
        if read.timestamp is None and bytes(read.snapshot):
            inner = decode(_SNAPSHOT, bytes(read.snapshot))
            read.timestamp = inner.timestamp if inner else None
        return read
    read = _Line(is_sidechain=_SIDECHAIN.search(line) is not None)
    for found in _SCRAPE.finditer(repair(line)):
        name = _LINE_NAMES[found[1].decode()]
        if getattr(read, name) is None or name not in {"cwd", "timestamp"}:
            setattr(read, name, decode(_TEXT, found[2]))
    return read


def _last(lines: list[_Line], name: str) -> str | None:
    """The last text under that name; an empty one counts, it has cleared those before it."""
    for line in reversed(lines):
        if isinstance(value := getattr(line, name), str):
            return value or None
    return None


def _first(lines: list[_Line], name: str) -> str | None:
    return next((value for line in lines if isinstance(value := getattr(line, name), str)), None)


def _first_prompt(lines: list[_Line]) -> str | None:
    """The first text that a person typed, else the first command."""
    command: str | None = None
    for line in lines:
        if line.type != "user" or line.is_meta is True or line.is_compact_summary is True:
            continue
        for said in _texts(line.message):
            if called := _COMMAND.search(said):
                command = command or called[1]
            elif not _is_generated(said):
                return said if len(said) <= _LONGEST_PROMPT else _cut(said)
    return command or None


def _texts(message: msgspec.Raw) -> list[str]:
    """The texts of a prompt, on one line each; none for what only returns a tool's result."""
    body = decode(_BODY, bytes(message))
    match body:
        case _Body(content=str(content)):
            texts = [content]
        case _Body(content=list(content)):
            blocks = [block for block in content if isinstance(block, _Block)]
            if any(block.type == "tool_result" for block in blocks):
                return []
            texts = [text(block.text) or "" for block in blocks if block.type == "text"]
        case _:
            return []
    return [flat for said in texts if (flat := said.replace("\n", " ").strip())]


def _cut(said: str) -> str:
    return said[:_LONGEST_PROMPT].rstrip() + "…"


def _is_generated(said: str) -> bool:
    """Whether the CLI or an editor wrote this, in the user's place."""
    if said.startswith(_NOT_TYPED_START) or _INTERRUPTED.match(said):
        return True
    return any(said.startswith(f"<{t}>") and said.endswith(f"</{t}>") for t in _NOT_TYPED_WHOLE)


def _milliseconds(timestamp: str | None) -> int | None:
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None
