"""What is checked and looked up before a session is created. Below `hub`.

Owns which conversation of the CLI a new session goes on with, and which members of a spec need
another one. The newest conversation of a folder is found on the hub's own machine only.
"""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from quarterdeck.claude.launch import SIMPLE, is_simple
from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.hub.runners import LOCAL
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.launch_members import BYPASS, bypassing
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.transcripts.catalogue import list_sessions


def check_new(spec: SessionSpec) -> None:
    """Refuse a subagent that would do more than its session may, and a CLI that calls no hooks.

    It is no check of every spec: a person may take back the leave to skip permissions later.
    """
    if is_simple(spec.env):
        raise UsageError(
            f"env: with {SIMPLE} the CLI calls no hooks, and rules would not hold for what it"
            " allows by itself"
        )
    if not spec.skip_permissions and (names := bypassing(spec.subagents)):
        raise UsageError(f"subagents: {names[0][:100]!r}: {BYPASS} needs skip_permissions as well")


async def origin_of(command: CreateSession, spec: SessionSpec) -> Origin:
    """Where a new session takes its conversation from. Raises `UsageError`, `NotFound`."""
    if command.cli_latest:
        if command.cli_session is not None:
            raise UsageError("cli_latest and cli_session cannot be combined")
        return Origin(cli_session=await _latest(spec), fork=command.cli_fork)
    if command.cli_session is None and (command.cli_fork or command.cli_at is not None):
        raise UsageError("cli_fork and cli_at need cli_session")
    return Origin(
        cli_session=command.cli_session,
        fork=command.cli_fork or command.cli_at is not None,
        at=command.cli_at,
    )


async def _latest(spec: SessionSpec) -> str:
    if (spec.machine or LOCAL) != LOCAL:
        raise UsageError(
            "cli_latest: the conversations of another machine are not known here; name one with"
            " cli_session"
        )
    if spec.worktree is not None:
        raise UsageError("cli_latest: a new worktree has no conversation yet")
    found = await to_thread.run_sync(_find, spec.directory, spec.env.get("CLAUDE_CONFIG_DIR"))
    if found is None:
        raise NotFound("conversation in", spec.directory)
    return found


def _find(directory: str, config: str | None) -> str | None:
    folder = Path(config) if config else None
    newest = list_sessions(directory, limit=1, include_worktrees=False, config_dir=folder)
    return newest[0].session_id if newest else None
