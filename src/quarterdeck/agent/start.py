"""The start of an agent: find the CLI, check the options, start it, initialise it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from anyio import to_thread
from msgspec.structs import replace

from quarterdeck.agent.options import Options
from quarterdeck.agent.session_store import SessionStore, newest_session, projects_of, restore
from quarterdeck.claude.environment import child_environment
from quarterdeck.claude.forced_settings import is_simple, with_hooks_called, with_inbox_refused
from quarterdeck.claude.launch import ArgumentFiles, require_support, to_argv
from quarterdeck.claude.locate import cli_version, find_claude
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.links.base import Link
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.wire.commands import Initialize
from quarterdeck.wire.hooks import HookMatcher
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.versions import Version


class CliStart(Value):
    """All that the start of a CLI needs."""

    command: tuple[str, ...]
    env: dict[str, str]
    version: Version | None


async def prepare_start(
    options: Options, files: ArgumentFiles, *, hooked: bool = False
) -> CliStart:
    """Find the CLI, and make its command line. Raises `LaunchError` or `UnsupportedError`.

    `files` holds values that are too long for an argument; it must outlive the process. `hooked`:
    a program waits for reports of calls, and settings of a repository must not keep them away. Who
    asks for a CLI without hooks (`bare`) gets one.
    """
    command = find_command(options)
    version = await to_thread.run_sync(cli_version, command)
    options = await to_thread.run_sync(options.as_flags)
    if version is not None:
        require_support(options, version)
    directory = Path(options.cwd or "")
    options = await to_thread.run_sync(with_inbox_refused, options, version, directory)
    if hooked and not options.bare and not is_simple(options.env):
        options = await to_thread.run_sync(with_hooks_called, options, directory, version)
    return CliStart(
        command=(*command, *to_argv(options, files)),
        env=child_environment(
            env=options.env,
            api_billing=options.api_billing,
            file_checkpointing=options.file_checkpointing,
        ),
        version=Version.parse(version) if version else None,
    )


async def start_link(
    options: Options,
    files: ArgumentFiles,
    stderr: Callable[[str], None] | None,
    *,
    hooked: bool = False,
) -> tuple[Version | None, SubprocessLink]:
    """Start the CLI as a process. Raises `LaunchError` or `UnsupportedError` if that fails."""
    ready = await prepare_start(options, files, hooked=hooked)
    link = await SubprocessLink.start(
        ready.command,
        cwd=options.cwd,
        env=ready.env,
        steps=options.stop,
        on_stderr=stderr,
    )
    return ready.version, link


def projects_of_agent(options: Options) -> Path:
    """Where the CLI of these options keeps its transcripts."""
    env = child_environment(env=options.env, api_billing=options.api_billing)
    return projects_of(env)


async def restore_session(options: Options, store: SessionStore, projects: Path) -> Options:
    """The options for a CLI whose transcript is copied, with its session taken from the store."""
    directory = Path(options.cwd or "")
    if options.continue_:
        newest = await newest_session(store, directory)
        if newest is not None:
            options = replace(options, continue_=False, resume=newest)
    if options.resume is not None:
        await restore(store, options.resume, directory, projects)
    return replace(options, session_mirror=True)


@runtime_checkable
class Versioned(Protocol):
    """A link that knows the CLI's version, because its creator started that CLI."""

    @property
    def version(self) -> Version | None:
        """The CLI's version, or None if it did not say."""


def version_of(link: Link) -> Version | None:
    """The version of the CLI at the other end, where the link knows it."""
    return link.version if isinstance(link, Versioned) else None


def find_command(options: Options) -> tuple[str, ...]:
    """The command that starts the CLI, without its flags."""
    if isinstance(options.claude, tuple):
        return options.claude
    path = None if options.claude is None else os.fspath(options.claude)
    return find_claude(path)


def check_servers(options: Options, servers: Iterable[str]) -> None:
    """Raise `UsageError` if a server of this process has the name of one that the CLI starts."""
    if doubled := sorted({*options.mcp_servers} & {*servers}):
        raise UsageError(f"tools and mcp_servers both have a server named {', '.join(doubled)}")


def initialize_command(
    options: Options, hooks: Mapping[str, tuple[HookMatcher, ...]], servers: Iterable[str]
) -> Initialize:
    """The `initialize` request: the options that are not flags."""
    names = tuple(servers)
    schema = options.schema()
    return Initialize(
        hooks=dict(hooks) or None,
        sdk_mcp_servers=names or None,
        json_schema=dump(schema) if schema is not None else ABSENT,
        agents=dict(options.subagents) or None,
        title=options.title,
        skills=options.skills,
        agent_progress_summaries=options.agent_progress_summaries or None,
    )
