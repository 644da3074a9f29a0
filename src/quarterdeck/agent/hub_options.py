"""`Options` for a session of the hub: which command creates it, and what the hub cannot carry.

Owns that translation, and the reasons. It sends nothing: `client` does, which knows of `Options`
only that they can become a command.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from quarterdeck.agent.typed_settings import merged_settings, plugin_folders
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import CARRIED, OPTIONS, AnyPath, Option
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec

if TYPE_CHECKING:
    from quarterdeck.agent.options import Options

BYPASS = "bypassPermissions"

NOT_CARRIED = {option.name: option.refused for option in OPTIONS if option.refused} | {
    "permission_prompts": "the hub decides or asks about every call",
    "stop": "the machine's runner decides how long a CLI may take to end",
}
"""Options that no machine can carry, each with its reason."""


def create_command(options: Options, *, here: str | None) -> CreateSession:
    """The command that creates a session with these options.

    `here` is this program's folder, if the agent will run on this machine: relative paths are
    relative to it. Raises `UsageError` for an option that the hub cannot carry.
    """
    plain = type(options)()
    for name, reason in NOT_CARRIED.items():
        if getattr(options, name) != getattr(plain, name):
            raise UsageError(f"{name}: a session of the hub cannot have it: {reason}")
    if options.resume_session_at is not None and not options.fork_session:
        raise UsageError("resume_session_at: the hub never cuts a conversation off; fork_session")
    return CreateSession(
        spec=_spec(options, _Paths(here)),
        **{each.command: getattr(options, each.name) for each in OPTIONS if each.command},
    )


class _Paths:
    """Makes paths absolute, if that means something to the machine of the agent."""

    def __init__(self, here: str | None) -> None:
        self._here = here

    def of(self, option: str, path: AnyPath) -> str:
        given = Path(path)
        if self._here is not None:
            given = Path(self._here) / given.expanduser()
        if not given.is_absolute():
            raise UsageError(f"{option}: on another machine the path must be absolute, not {given}")
        return os.path.normpath(given)

    def all(self, option: str, paths: Iterable[AnyPath]) -> tuple[str, ...]:
        return tuple(self.of(option, path) for path in paths)


def _spec(options: Options, paths: _Paths) -> SessionSpec:
    members = {
        member: _value(option, getattr(options, option.name), paths) for member, option in CARRIED
    }
    texts = [os.fspath(each) for each in options.mcp_config]
    given = options.settings
    if given is not None and not _is_json(os.fspath(given)):
        given = paths.of("settings", given)
    settings = merged_settings(given, None, options.sandbox, options.plugins)
    skip = options.dangerously_skip_permissions
    mode = options.permission_mode
    members |= {
        "directory": paths.of("cwd", options.cwd or "."),
        "name": options.name or options.title,
        # The flag that skips permissions overrides any mode.
        "mode": None if skip else mode,
        "skip_permissions": skip or mode == BYPASS,
        "settings": None if settings is None else os.fspath(settings),
        "plugin_dirs": paths.all(
            "plugin_dirs", (*options.plugin_dirs, *plugin_folders(options.plugins))
        ),
        "mcp_servers": _servers(options, [text for text in texts if _is_json(text)]),
        "mcp_config": paths.all("mcp_config", [text for text in texts if not _is_json(text)]),
        "subagents": _subagents(options),
        "json_schema": _schema(options),
        "extra_args": dict(options.extra_args),
        "claude": _cli(options, paths),
        "env": dict(options.env),
        "api_billing": options.api_billing,
        "skills": options.skills,
        "agent_progress_summaries": options.agent_progress_summaries,
    }
    return SessionSpec(**members)


def _value(option: Option, value: Any, paths: _Paths) -> Any:
    """What the spec has: the same, or absolute paths."""
    if value is None or not option.paths or option.json:
        return value
    return paths.all(option.name, value) if option.several else paths.of(option.name, value)


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


class _McpConfig(msgspec.Struct):
    servers: dict[str, Raw] = msgspec.field(name="mcpServers")


def _servers(options: Options, given: list[str]) -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    for text in given:
        try:
            found |= msgspec.json.decode(text, type=_McpConfig).servers
        except msgspec.DecodeError as error:
            raise UsageError(f"mcp_config: {error}") from error
    for name, server in options.mcp_servers.items():
        found[name] = Raw(msgspec.json.encode(server))
    return {name: Raw(bytes(server)) for name, server in found.items()}


def _subagents(options: Options) -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    if options.agents is not None:
        found |= msgspec.json.decode(options.agents, type=dict[str, Raw])
    for name, agent in options.subagents.items():
        found[name] = Raw(msgspec.json.encode(agent))
    return {name: Raw(bytes(agent)) for name, agent in found.items()}


def _schema(options: Options) -> dict[str, Raw] | None:
    text = options.json_schema
    schema = options.schema()
    if schema is not None:
        text = msgspec.json.encode(schema).decode()
    return None if text is None else msgspec.json.decode(text, type=dict[str, Raw])


def _cli(options: Options, paths: _Paths) -> str | None:
    given = options.claude
    if isinstance(given, tuple):
        raise UsageError("claude: a session of the hub starts one program, without arguments")
    if given is None or os.sep not in os.fspath(given):
        return None if given is None else os.fspath(given)
    return paths.of("claude", given)
