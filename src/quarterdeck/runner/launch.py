"""From the hub's words to a process: what `SessionSpec` and `Origin` mean to the CLI.

Owns that translation. A `Run` stands above it; below it are the links. It starts nothing: it gives
everything that a start needs, or says why there cannot be one.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.claude.environment import child_environment
from quarterdeck.claude.launch import (
    ArgumentFiles,
    Launch,
    require_support,
    to_argv,
    with_inbox_refused,
)
from quarterdeck.claude.locate import cli_version, find_claude
from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.worktrees.worktrees import Worktrees

BYPASS = "bypassPermissions"


class Prepared(Value):
    """What a start needs. `mark` is a variable that every descendant of the process has."""

    command: tuple[str, ...]
    argv: tuple[str, ...]
    env: dict[str, str]
    directory: str
    version: str | None
    mark: str


async def prepare(
    spec: SessionSpec,
    origin: Origin,
    worktrees: Worktrees,
    spill: ArgumentFiles,
    *,
    only: str | None = None,
) -> Prepared:
    """Look for everything that a start needs. Raises `LaunchError` or `UsageError`.

    `only` is the path of the one CLI that this machine starts, where there is such a rule.
    """
    launch = launch_of(spec, origin)
    if only is not None and spec.claude not in {None, only}:
        raise LaunchError(f"claude: this machine starts only {only}, not {spec.claude}")
    if not await anyio.Path(spec.directory).is_dir():
        raise LaunchError(f"directory: {spec.directory!r} is not a folder on this machine")
    command = await anyio.to_thread.run_sync(find_claude, only or spec.claude)
    version = await anyio.to_thread.run_sync(cli_version, command)
    if version is not None:
        require_support(launch, version)
    directory = Path(spec.directory)
    if spec.worktree is not None:
        directory = await worktrees.open(spec.directory, spec.worktree)
    launch = await anyio.to_thread.run_sync(with_inbox_refused, launch, version, directory)
    mark = f"QUARTERDECK_RUN_{uuid.uuid4().hex}"
    env = child_environment(env=spec.env, api_billing=spec.api_billing, file_checkpointing=True)
    return Prepared(
        command=command,
        argv=tuple(to_argv(launch, spill)),
        env={**env, mark: "1"},
        directory=os.fspath(directory),
        version=version,
        mark=mark,
    )


def launch_of(spec: SessionSpec, origin: Origin) -> Launch:
    """The CLI's options. Raises `UsageError` for what cannot be right."""
    if spec.mode == BYPASS and not spec.skip_permissions:
        # One may slip in by way of a default; both together are a person's wish.
        raise UsageError(f"mode: {BYPASS} needs skip_permissions as well")
    if origin.cli_session is None and (origin.fork or origin.at is not None):
        raise UsageError("origin: fork and at need the session that they are about")
    # The switch that skips permissions beats any mode: it is for a session in no other mode only.
    skip = spec.skip_permissions and spec.mode in (None, BYPASS)
    servers = msgspec.json.encode({"mcpServers": spec.mcp_servers}).decode()
    return Launch(
        resume=origin.cli_session,
        # A message in the middle is gone on from in a copy: the whole is never cut off.
        fork_session=origin.fork or origin.at is not None,
        resume_session_at=origin.at,
        model=spec.model,
        effort=spec.effort,
        max_thinking_tokens=spec.max_thinking_tokens,
        permission_mode=spec.mode,
        dangerously_skip_permissions=skip,
        allow_dangerously_skip_permissions=spec.skip_permissions and not skip,
        system_prompt=spec.system_prompt,
        append_system_prompt=spec.append_system_prompt,
        tools=spec.tools,
        allowed_tools=spec.allowed_tools,
        disallowed_tools=spec.disallowed_tools,
        settings=spec.settings,
        add_dirs=spec.add_dirs,
        mcp_config=(servers,) if spec.mcp_servers else (),
        max_turns=spec.max_turns,
        max_budget_usd=spec.max_budget_usd,
    )
