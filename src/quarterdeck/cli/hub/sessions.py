"""`quarterdeck new`, `ps`, `send`, and the commands that change one session."""

from __future__ import annotations

import time
from uuid import uuid4

import msgspec
from msgspec import Raw

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.spec import check_folder, read_prompt
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.client.blocking_client import BlockingClient
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.protocol.commands import (
    ArchiveSession,
    CreateSession,
    DeleteSession,
    ForkSession,
    Interrupt,
    MoveSession,
    RenameSession,
    ResumeSession,
    SendPrompt,
    StopSession,
)
from quarterdeck.protocol.sessions import SessionSpec

STOP_SECONDS = 20.0


class Conversation(Value):
    """The conversation of the CLI that a new session goes on with, if any."""

    id: str | None = None
    latest: bool = False
    fork: bool = False


def run_new(
    spec: SessionSpec,
    prompt: str | None,
    conversation: Conversation,
    target: Target,
    *,
    attach: bool,
) -> int:
    """Create a session; print its id, or attach to it."""
    text = None if prompt is None else read_prompt(prompt)
    client = connect(target)
    new = CreateSession(
        spec=check_folder(spec) if target.is_here else spec,
        prompt=ABSENT if text is None else _json(text),
        prompt_id=None if text is None else str(uuid4()),
        cli_session=conversation.id,
        cli_latest=conversation.latest,
        cli_fork=conversation.fork,
    )
    session = client.submit(new).session
    if attach:
        from quarterdeck.cli.hub.attach import run_attach

        return run_attach(session, target)
    print_line(session)
    return Exit.SUCCESS


def run_send(session: str, prompt: str, target: Target, *, steer: bool = False) -> int:
    """Send a prompt, into the running turn with `steer`; print its id."""
    content = _json(read_prompt(prompt))
    client = connect(target)
    found = find_session(client, session)
    new = SendPrompt(session=found, content=content, prompt=str(uuid4()), steer=steer)
    outcome = client.submit(new)
    print_line(outcome.prompt or "")
    return Exit.SUCCESS


def run_ps(
    target: Target, *, everything: bool, project: str | None = None, json_output: bool
) -> int:
    """List the sessions, newest first; or only those of a project."""
    client = connect(target)
    shapes = list(client.sessions())
    if everything:
        shapes += client.sessions(archived=True)
    if project is not None:
        shapes = [shape for shape in shapes if shape.spec.project == project]
    if json_output:
        print_json(shapes)
        return Exit.SUCCESS
    from quarterdeck.cli.hub.session_table import print_sessions  # it loads Rich

    print_sessions(shapes)
    return Exit.SUCCESS


# --- the small ones -------------------------------------------------------------------------------


def run_interrupt(session: str, target: Target) -> int:
    """Stop the running turn."""
    client = connect(target)
    client.submit(Interrupt(session=find_session(client, session)))
    return Exit.SUCCESS


def run_resume(session: str, machine: str | None, directory: str | None, target: Target) -> int:
    """Start its CLI again, on another machine if one is given."""
    if machine is None and directory is not None:
        raise UsageError("--directory needs --machine")
    client = connect(target)
    found = find_session(client, session)
    if machine is None:
        client.submit(ResumeSession(session=found))
    else:
        client.submit(MoveSession(session=found, machine=machine, directory=directory))
    return Exit.SUCCESS


def run_fork(
    session: str, at: str | None, name: str | None, worktree: str | None, target: Target
) -> int:
    """Create a copy; print its id."""
    client = connect(target)
    found = find_session(client, session)
    outcome = client.submit(ForkSession(session=found, at=at, name=name, worktree=worktree))
    print_line(outcome.session)
    return Exit.SUCCESS


def run_rename(session: str, name: str, target: Target) -> int:
    """Rename it."""
    if not name.strip():
        raise UsageError("the name is empty")
    client = connect(target)
    client.submit(RenameSession(session=find_session(client, session), name=name))
    return Exit.SUCCESS


def run_archive(session: str, target: Target, *, archived: bool) -> int:
    """Archive it, or take it out of the archive."""
    client = connect(target)
    client.submit(ArchiveSession(session=find_session(client, session), archived=archived))
    return Exit.SUCCESS


def run_rm(sessions: list[str], target: Target, *, stop: bool) -> int:
    """Delete sessions with their history."""
    client = connect(target)
    for session in [find_session(client, given) for given in sessions]:
        if stop:
            client.submit(StopSession(session=session))
            _wait_for_end(client, session)
        client.submit(DeleteSession(session=session))
    return Exit.SUCCESS


def _wait_for_end(client: BlockingClient, session: str) -> None:
    """Wait until the machine reports the end; after the timeout the hub may refuse the deletion."""
    deadline = time.monotonic() + STOP_SECONDS
    while client.session(session).run is not None and time.monotonic() < deadline:
        time.sleep(0.1)


def _json(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))
