"""`quarterdeck sessions`: list, show and change the sessions on disk.

Owns how they are printed; `transcripts` does the rest. No CLI is started.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import msgspec
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import write_all
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.domain.errors import UsageError
from quarterdeck.transcripts import (
    SessionInfo,
    SessionMessage,
    delete_session,
    list_sessions,
    rename_session,
    session_info,
    session_messages,
    tag_session,
)
from quarterdeck.wire.content import decode_user_body
from quarterdeck.wire.messages import Assistant, User
from quarterdeck.wire.tools import one_line


def list_all(folder: Path | None, *, limit: int, json_output: bool) -> int:
    """Print one line, or one JSON object, for each session."""
    found = list_sessions(folder, limit=limit)
    if json_output:
        _json_lines(found)
        return Exit.SUCCESS
    console = consoles.stdout()
    for info in found:
        line = Text.assemble((info.session_id, "cyan"))
        line.append(f"  {_when(info.last_modified)}", "dim")
        if info.tag:
            line.append(f"  #{one_line(info.tag, 40)}", "magenta")
        line.append(f"  {one_line(info.summary, 200)}")
        if folder is None and info.cwd:
            line.append(f"  {one_line(info.cwd, 200)}", "dim")
        if console.is_terminal:
            line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)
    if not found:
        consoles.stderr().print(Text("no sessions"))
    return Exit.SUCCESS


def show(session_id: str, folder: Path | None, *, json_output: bool) -> int:
    """Print the conversation as `run` shows it, or one JSON object for each message."""
    info = session_info(session_id, directory=folder)
    if info is None:
        raise UsageError(f"there is no session {session_id}")
    messages = session_messages(session_id, directory=folder)
    if json_output:
        _json_lines(messages)
        return Exit.SUCCESS
    console = consoles.stdout()
    screen = Screen(console)
    screen.note(f"{info.summary}  ({_when(info.last_modified)}, {info.cwd or 'folder unknown'})")
    for message in messages:
        _show(message, screen)
    return Exit.SUCCESS


def _show(message: SessionMessage, screen: Screen) -> None:
    if message.type == "assistant":
        screen.show(Assistant(message_json=message.message))
        return
    body = decode_user_body(message.message)
    if not message.is_compact_summary and body.text.strip():
        screen.echo_prompt(body.text)
    screen.show(User(message_json=message.message))


def rename(session_id: str, title: str, folder: Path | None) -> int:
    """Set a title."""
    rename_session(session_id, title, directory=folder)
    return Exit.SUCCESS


def set_tag(session_id: str, tag: str | None, folder: Path | None) -> int:
    """Set a tag, or remove it."""
    tag_session(session_id, tag, directory=folder)
    return Exit.SUCCESS


def delete(session_id: str, folder: Path | None, *, sure: bool) -> int:
    """Delete, after a confirmation. Without a terminal, `--yes` is required."""
    info = session_info(session_id, directory=folder)
    if info is None:
        raise UsageError(f"there is no session {session_id}")
    if not sure:
        if not sys.stdin.isatty():
            raise UsageError("this cannot be undone: add --yes where no person can be asked")
        consoles.stderr().print(
            Text(f"Delete «{one_line(info.summary, 100)}»? This cannot be undone. [y/N] "), end=""
        )
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            return Exit.FAILED
    delete_session(session_id, directory=folder)
    return Exit.SUCCESS


def _when(milliseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"


def _json_lines(items: list[SessionInfo] | list[SessionMessage]) -> None:
    for item in items:
        write_all(sys.stdout.fileno(), msgspec.json.encode(item) + b"\n")
