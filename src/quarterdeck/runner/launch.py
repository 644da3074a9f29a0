"""From `SessionSpec` and `Origin` to a command line, an environment and a folder for the CLI.

Owns that translation. A `Run` is above; the links are below. It starts nothing: it returns all that
a start needs, or raises the reason why there cannot be one.
"""

from __future__ import annotations

import os
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.claude.environment import child_environment
from quarterdeck.claude.forced_settings import with_hooks_called, with_inbox_refused
from quarterdeck.claude.launch import ArgumentFiles, Launch, require_support, to_argv
from quarterdeck.claude.locate import cli_version, find_claude
from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.domain.launch_options import CARRIED
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.launch_members import without_bypass
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.transcripts.layout import bring_session, config_dir_of
from quarterdeck.worktrees.worktrees import Worktrees

BYPASS = "bypassPermissions"


class Prepared(Value):
    """All that a start needs. `mark` is a variable in the environment of every descendant."""

    command: tuple[str, ...]
    argv: tuple[str, ...]
    env: dict[str, str]
    directory: str
    version: str | None
    mark: str


def new_mark() -> str:
    """The name of a variable that no other run has."""
    return f"QUARTERDECK_RUN_{uuid.uuid4().hex}"


async def prepare(
    spec: SessionSpec,
    origin: Origin,
    worktrees: Worktrees,
    files: ArgumentFiles,
    mark: str,
    *,
    only: str | None = None,
) -> Prepared:
    """Find all that a start needs. Raises `LaunchError` or `UsageError`.

    `mark` is from `new_mark`. `only` is the path of the one CLI that this machine may start, if it
    is restricted to one.
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
        directory = await worktrees.open(spec.directory, spec.worktree, like=origin.folder)
    if not spec.cross_session:
        refused = partial(with_inbox_refused, launch, version, directory, always=True)
        launch = await anyio.to_thread.run_sync(refused)
    launch = await anyio.to_thread.run_sync(with_hooks_called, launch, directory, version)
    env = child_environment(env=spec.env, api_billing=spec.api_billing, file_checkpointing=True)
    if origin.folder is not None and origin.cli_session is not None:
        bring = partial(bring_session, origin.cli_session, directory, config_dir_of(env))
        await anyio.to_thread.run_sync(bring)
    return Prepared(
        command=command,
        argv=tuple(to_argv(launch, files)),
        env={**env, mark: "1"},
        directory=os.fspath(directory),
        version=version,
        mark=mark,
    )


def launch_of(spec: SessionSpec, origin: Origin) -> Launch:
    """The CLI's options. Raises `UsageError` for invalid ones."""
    if spec.mode == BYPASS and not spec.skip_permissions:
        # One of them may come from a default; both together are a person's decision.
        raise UsageError(f"mode: {BYPASS} needs skip_permissions as well")
    if origin.cli_session is None and (origin.fork or origin.at is not None):
        raise UsageError("origin: `fork` and `at` need `cli_session`")
    # The flag that skips permissions overrides any mode, so it is given only without another mode.
    skip = spec.skip_permissions and spec.mode in (None, BYPASS)
    servers = msgspec.json.encode({"mcpServers": spec.mcp_servers}).decode()
    # A person may have taken the leave to skip permissions back since the session was created.
    subagents = spec.subagents if spec.skip_permissions else without_bypass(spec.subagents)
    options: dict[str, Any] = {option.name: getattr(spec, member) for member, option in CARRIED}
    options |= {
        "name": None,  # it is for people
        "worktree": None,  # `prepare` opens it
        "resume": origin.cli_session,
        # Resuming at an earlier message happens in a copy: the original is never truncated.
        "fork_session": origin.fork or origin.at is not None,
        "resume_session_at": origin.at,
        # What people switch while a session runs is a number of tokens: that holds.
        "thinking": spec.thinking_mode if spec.max_thinking_tokens is None else None,
        "dangerously_skip_permissions": skip,
        "allow_dangerously_skip_permissions": spec.skip_permissions and not skip,
        # Later servers replace earlier ones of the same name, and the hub's own are the last.
        "mcp_config": (*spec.mcp_config, *((servers,) if spec.mcp_servers else ())),
        "agents": _json_text(subagents) if subagents else None,
        "json_schema": None if spec.json_schema is None else _json_text(spec.json_schema),
        # A model that people switched to may be the one that stands in for another.
        "fallback_model": spec.fallback_model if spec.fallback_model != spec.model else None,
    }
    return Launch(**options, extra_args=spec.extra_args)


def _json_text(members: dict[str, msgspec.Raw]) -> str:
    return msgspec.json.encode(members).decode()
