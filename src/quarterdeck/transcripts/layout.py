"""Where the CLI keeps its sessions.

Owns the paths: the projects folder, the folder of one project, the file of one session. The names
of folders are made in `claude.project_names`. It looks at names, not into sessions, with one
exception: of two folders with similar names it searches for the one that mentions the project.

    <config dir>/projects/<project folder>/<session id>.jsonl
    <config dir>/projects/<project folder>/<session id>/subagents/**/agent-<agent id>.jsonl

The CLI resumes only sessions of the folder in which it is started: `bring_session` copies one
there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import msgspec

from quarterdeck.claude.project_names import LONGEST_NAME as LONGEST_NAME
from quarterdeck.claude.project_names import hyphenate
from quarterdeck.claude.project_names import project_folder_name as project_folder_name
from quarterdeck.claude.project_names import project_path as project_path
from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts.lines import CHUNK, open_regular

AnyPath: TypeAlias = str | os.PathLike[str]
"""A folder, as callers may give it."""

_GIT_SECONDS = 5
"""Long enough for a cold disk; a listing must not hang on a repository that does not answer."""

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def is_session_id(text: str) -> bool:
    """Whether `text` is a UUID as the CLI writes them."""
    return _ID.fullmatch(text) is not None


def check_id(text: str, what: str = "session id") -> str:
    """Return `text` if it is a UUID: nothing else may become part of a path."""
    if not is_session_id(text):
        raise UsageError(f"not a {what}: {text!r}; it must be a UUID")
    return text


def config_dir_of(env: Mapping[str, str]) -> str | None:
    """The folder in which a CLI with this environment keeps its sessions, if that tells it."""
    if given := env.get("CLAUDE_CONFIG_DIR"):
        return given
    return f"{env['HOME']}/.claude" if env.get("HOME") else None


def projects_dir(config_dir: AnyPath | None = None) -> Path:
    """The folder of all projects: in `config_dir`, else CLAUDE_CONFIG_DIR, else ~/.claude."""
    chosen = (
        os.fspath(config_dir) if config_dir is not None else os.environ.get("CLAUDE_CONFIG_DIR")
    )
    base = chosen or str(Path.home() / ".claude")
    return Path(unicodedata.normalize("NFC", base)) / "projects"


def project_folders(path: str, projects: Path) -> list[Path]:
    """The folders that hold sessions of the project at `path`, the expected one first.

    A short path has one. For a long one, versions disagree: old ones do not cut the name, and the
    hash of others is of another kind. So each folder that begins alike is taken as well, unless
    its sessions all say that they belong elsewhere.
    """
    expected = projects / project_folder_name(path)
    found = [expected] if expected.is_dir() else []
    name = hyphenate(path)
    if len(name) > LONGEST_NAME:
        start = name[:LONGEST_NAME]
        found += [
            folder
            for folder in subfolders(projects)
            if folder != expected and folder.name.startswith(start) and _may_hold(folder, path)
        ]
    return found


def worktrees(path: str) -> list[str]:
    """The paths of all git worktrees of the repository at `path`; empty outside of a repository."""
    try:
        done = subprocess.run(
            ["git", "worktree", "list", "--porcelain"],
            cwd=path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    if done.returncode != 0:
        return []
    mark = b"worktree "
    lines = (line for line in done.stdout.split(b"\n") if line.startswith(mark))
    return [unicodedata.normalize("NFC", os.fsdecode(line[len(mark) :])) for line in lines]


def session_folders(
    directory: AnyPath | None, *, include_worktrees: bool, config_dir: AnyPath | None
) -> Iterator[tuple[Path, str | None]]:
    """The folders to search, each once, with the path of its project if known.

    Lazy on purpose: git runs only if the folders before did not have the session.
    """
    projects = projects_dir(config_dir)
    if directory is None:
        yield from ((folder, None) for folder in subfolders(projects))
        return
    path = project_path(directory)
    seen: set[Path] = set()
    for candidate in _with_worktrees(path, include_worktrees):
        for folder in project_folders(candidate, projects):
            if folder not in seen:
                seen.add(folder)
                yield folder, candidate


def find_session(
    session_id: str, directory: AnyPath | None, config_dir: AnyPath | None
) -> tuple[Path, str | None] | None:
    """The file of a session and its project's path. An empty file counts as none."""
    name = f"{check_id(session_id)}.jsonl"
    for folder, path in session_folders(directory, include_worktrees=True, config_dir=config_dir):
        file = folder / name
        try:
            if file.is_file() and file.stat().st_size > 0:
                return file, path
        except OSError:
            continue
    return None


def require_session(session_id: str, directory: AnyPath | None, config_dir: AnyPath | None) -> Path:
    """The file of a session that must be there."""
    if found := find_session(session_id, directory, config_dir):
        return found[0]
    where = f"for {os.fspath(directory)}" if directory is not None else "in any project"
    raise UsageError(f"no session {session_id} {where} under {projects_dir(config_dir)}")


def subfolders(folder: Path) -> list[Path]:
    """The folders in `folder`, by name; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in entries if _is_dir(entry))
    except OSError:
        return []


def _with_worktrees(path: str, include_worktrees: bool) -> Iterator[str]:
    yield path
    if include_worktrees:
        yield from worktrees(path)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _may_hold(folder: Path, path: str) -> bool:
    """Whether a session in `folder` names `path` as its own, or no session there names any."""
    wanted = b'"cwd":' + msgspec.json.encode(os.fsencode(path).decode(errors="replace"))
    named = False
    for file in sorted(folder.glob("*.jsonl")):
        try:
            with open_regular(file) as stream:
                head = stream.read(CHUNK)
        except OSError:
            continue
        if wanted in head:
            return True
        named = named or b'"cwd":' in head
    return not named


def bring_session(session_id: str, directory: AnyPath, config_dir: AnyPath | None = None) -> Path:
    """The session's file with the project of `directory`, copied there if it is with another one.

    Raises `UsageError` if there is no such session. Blocks on the disk.
    """
    projects = projects_dir(config_dir)
    there = (
        projects / project_folder_name(project_path(directory)) / f"{check_id(session_id)}.jsonl"
    )
    if there.is_file():
        return there
    found = require_session(session_id, None, config_dir)
    there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = there.with_name(f".{uuid4()}.part")
    try:
        shutil.copyfile(found, part, follow_symlinks=False)
        part.chmod(0o600)
        part.replace(there)
    finally:
        part.unlink(missing_ok=True)
    return there
