"""Changes to a session on disk: its title, its tag, its end.

Owns `rename_session`, `tag_session` and `delete_session`. A session file is only ever appended to,
by one write in append mode, so that a CLI which is writing to it at the same moment loses nothing
and neither do we. Whatever is a link is refused: a change must stay in the projects folder.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import unicodedata
from pathlib import Path

import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts.layout import (
    AnyPath,
    check_id,
    projects_dir,
    require_session,
)

_INVISIBLE = frozenset({"Cf", "Co", "Cn"})
"""Unicode's format, private and unassigned characters: they can make two tags look alike."""


class _CustomTitle(msgspec.Struct, tag="custom-title", rename="camel"):
    custom_title: str
    session_id: str


class _Tag(msgspec.Struct, tag="tag", rename="camel"):
    # The CLI finds this line by its first bytes, {"type":"tag": the type must stay in front.
    tag: str
    session_id: str


def rename_session(
    session_id: str,
    title: str,
    *,
    directory: AnyPath | None = None,
    config_dir: AnyPath | None = None,
) -> None:
    """Give a session a title, in place of the one it has. Blocks on the disk."""
    check_id(session_id)
    if not (stripped := whole_characters(title).strip()):
        raise UsageError("a title must not be empty")
    _append(session_id, _CustomTitle(stripped, session_id), directory, config_dir)


def tag_session(
    session_id: str,
    tag: str | None,
    *,
    directory: AnyPath | None = None,
    config_dir: AnyPath | None = None,
) -> None:
    """Replace the tag of a session; None removes it. Blocks on the disk.

    Compatible forms of characters are unified (NFKC) and invisible characters are removed, as the
    CLI does, so that filtering by tag works as expected.
    """
    check_id(session_id)
    cleaned = "" if tag is None else _visible_only(whole_characters(tag)).strip()
    if tag is not None and not cleaned:
        raise UsageError("a tag must have a visible character; None removes the tag")
    _append(session_id, _Tag(cleaned, session_id), directory, config_dir)


def delete_session(
    session_id: str, *, directory: AnyPath | None = None, config_dir: AnyPath | None = None
) -> None:
    """Delete a session permanently: its file, and its folder with all its subagents.

    The folder goes first. If that fails half-way the session is still there to be deleted again.
    Blocks on the disk.
    """
    path = require_session(session_id, directory, config_dir)
    folder = open_project(path, projects_dir(config_dir))
    try:
        _refuse_link(path.name, folder, path)
        try:
            _refuse_link(session_id, folder, path.with_suffix(""))
            shutil.rmtree(session_id, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            pass  # a session without subagents has no folder
        os.unlink(path.name, dir_fd=folder)
    except FileNotFoundError:
        raise UsageError(f"no session {session_id}: it was deleted meanwhile") from None
    finally:
        os.close(folder)


def open_project(path: Path, projects: Path) -> int:
    """Open the folder of a session's file, and make sure that it is inside `projects`.

    Operations relative to this handle stay there, even if the folder is replaced by a link
    meanwhile.
    """
    try:
        return os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UsageError(f"{path.parent} is a link out of {projects}: not changed") from None
        raise


def whole_characters(value: str) -> str:
    """`value` without halves of characters, which cannot be written as UTF-8."""
    return value.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def _append(
    session_id: str,
    line: _CustomTitle | _Tag,
    directory: AnyPath | None,
    config_dir: AnyPath | None,
) -> None:
    path = require_session(session_id, directory, config_dir)
    folder = open_project(path, projects_dir(config_dir))
    try:
        _refuse_link(path.name, folder, path)
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path.name, flags, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        # A CLI that was killed leaves half a line. Ours must not become its other half.
        size = os.fstat(handle).st_size
        start = b"\n" if size and os.pread(handle, 1, size - 1) != b"\n" else b""
        data = start + msgspec.json.encode(line) + b"\n"
        if os.write(handle, data) != len(data):
            raise OSError(errno.ENOSPC, "only a part of the line was written", str(path))
    finally:
        os.close(handle)


def _refuse_link(name: str, folder: int, path: Path) -> None:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise UsageError(f"{path} is a link: not changed")


def _visible_only(value: str) -> str:
    """Normalise and strip until nothing changes: removing a mark may allow a new composition."""
    for _ in range(10):
        before = value
        value = unicodedata.normalize("NFKC", value)
        value = "".join(char for char in value if unicodedata.category(char) not in _INVISIBLE)
        if value == before:
            break
    return value
