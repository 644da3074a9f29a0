"""What is checked and looked up before a session is created. Below `hub`.

Owns which conversation of the CLI a new session goes on with, and which members of a spec need
another one. The newest conversation of a folder is looked for on the machine of the session: on the
hub's own disk, or by the runner of another machine (`CliSessions`).
"""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from quarterdeck.claude.forced_settings import SIMPLE, is_simple
from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.launch_members import BYPASS, bypass_names
from quarterdeck.protocol.machine_requests import CliSessionsOnDisk, SeeCliSessions
from quarterdeck.protocol.sessions import LOCAL, Origin, SessionSpec
from quarterdeck.transcripts.catalogue import list_sessions
from quarterdeck.transcripts.layout import config_dir_of

SECONDS = 60.0
"""A disk with thousands of transcripts takes a few seconds."""

AWAY = frozenset({
    "attach-serve", "await-claim", "background", "bg", "cloud", "desktop", "handle-uri",
    "managed-settings", "managed-settings-in-initialize", "routine", "session-tunnel", "tmux",
})  # fmt: skip
"""Flags with which the CLI runs elsewhere, or with settings that come before those of its machine:
2.1.120 calls no hooks with `disableAllHooks` in `--managed-settings` (tried)."""


class CliSessions:
    """Looks at the disks of machines."""

    def __init__(self, requests: MachineRequests) -> None:
        self._requests = requests

    async def on_disk(
        self, machine: str, *, directory: str | None = None, limit: int = 100
    ) -> CliSessionsOnDisk:
        """The newest ones. Raises `Conflict` with the machine's code, or `LinkError`."""
        wanted = SeeCliSessions(limit=limit, directory=directory)
        return await self._requests.run(machine, wanted, CliSessionsOnDisk, seconds=SECONDS)

    async def newest(self, machine: str, directory: str, config: str | None) -> str | None:
        """The newest conversation in a folder, if there is one. Raises as `on_disk`.

        `config` is the folder in which the CLI keeps them, if that is not where it always is.
        """
        wanted = SeeCliSessions(limit=1, directory=directory, worktrees=False, config=config)
        found = await self._requests.run(machine, wanted, CliSessionsOnDisk, seconds=SECONDS)
        return found.sessions[0].cli_session if found.sessions else None


def check_new(spec: SessionSpec) -> None:
    """Refuse a mode or a subagent that would do more than its session may, and a CLI without hooks.

    It is no check of every spec: a person may take back the leave to skip permissions later.
    """
    if held := sorted(AWAY & {name.lower() for name in spec.extra_args}):
        raise UsageError(
            f"extra_args: --{held[0]}: the hub would miss messages, or its rules would not hold"
        )
    if is_simple(spec.env):
        raise UsageError(
            f"env: with {SIMPLE} the CLI calls no hooks, and rules would not hold for what it"
            " allows by itself"
        )
    if spec.mode == BYPASS and not spec.skip_permissions:
        raise UsageError(
            f"mode: {BYPASS} needs skip_permissions as well (--dangerously-skip-permissions)"
        )
    if not spec.skip_permissions and (names := bypass_names(spec.subagents)):
        raise UsageError(f"subagents: {names[0][:100]!r}: {BYPASS} needs skip_permissions as well")


async def origin_of(command: CreateSession, spec: SessionSpec, requests: MachineRequests) -> Origin:
    """Where a new session takes its conversation from.

    Raises `UsageError`, `NotFound`, and `Conflict` or `LinkError` of another machine.
    """
    if command.cli_latest:
        if command.cli_session is not None:
            raise UsageError("cli_latest and cli_session cannot be combined")
        return Origin(cli_session=await _latest(spec, requests), fork=command.cli_fork)
    if command.cli_session is None and (command.cli_fork or command.cli_at is not None):
        raise UsageError("cli_fork and cli_at need cli_session")
    return Origin(
        cli_session=command.cli_session,
        fork=command.cli_fork or command.cli_at is not None,
        at=command.cli_at,
    )


async def _latest(spec: SessionSpec, requests: MachineRequests) -> str:
    if spec.worktree is not None:
        raise UsageError("cli_latest: a new worktree has no conversation yet")
    config = config_dir_of(spec.env)
    machine = spec.machine or LOCAL
    if machine == LOCAL:
        found = await to_thread.run_sync(_find, spec.directory, config)
    else:
        found = await CliSessions(requests).newest(machine, spec.directory, config)
    if found is None:
        raise NotFound("conversation in", spec.directory)
    return found


def _find(directory: str, config: str | None) -> str | None:
    folder = Path(config) if config else None
    newest = list_sessions(directory, limit=1, include_worktrees=False, config_dir=folder)
    return newest[0].session_id if newest else None
