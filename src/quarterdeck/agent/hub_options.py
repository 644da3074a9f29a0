"""`Options` for a session of the hub: which command creates it, and what the hub cannot carry.

Owns that translation, and the reasons. It sends nothing: `client` does, which knows of `Options`
only that they can become a command.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from quarterdeck.agent.typed_settings import merged_settings, plugin_folders
from quarterdeck.claude.launch import AnyPath
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec

if TYPE_CHECKING:
    from quarterdeck.agent.options import Options

BYPASS = "bypassPermissions"

SAME = frozenset(
    {
        "model", "fallback_model", "effort", "thinking_display", "max_thinking_tokens", "max_turns",
        "max_budget_usd", "task_budget", "betas", "system_prompt", "append_system_prompt",
        "exclude_dynamic_system_prompt_sections", "plan_mode_instructions", "tools",
        "allowed_tools", "disallowed_tools", "setting_sources", "strict_mcp_config", "agent",
        "disable_slash_commands", "safe_mode", "restricted", "include_partial_messages",
        "include_hook_events", "forward_subagent_text", "prompt_suggestions", "session_mirror",
        "worktree", "api_billing", "skills", "agent_progress_summaries",
    }
)  # fmt: skip
"""Options that a spec has under the same name, with the same value."""

ANOTHER_WAY = {
    "resume": "cli_session of the command",
    "continue_": "cli_latest of the command",
    "fork_session": "cli_fork of the command",
    "resume_session_at": "cli_at of the command",
    "name": "name",
    "title": "name",
    "thinking": "thinking_mode",
    "permission_mode": "mode",
    "dangerously_skip_permissions": "skip_permissions",
    "system_prompt_file": "system_prompt_file, as an absolute path",
    "append_system_prompt_file": "append_system_prompt_file, as an absolute path",
    "debug_file": "debug_file, as an absolute path",
    "settings": "settings; a path becomes absolute",
    "add_dirs": "add_dirs, as absolute paths",
    "plugin_dirs": "plugin_dirs, as absolute paths",
    "sandbox": "settings",
    "plugins": "plugin_dirs, as absolute paths, and settings",
    "mcp_config": "mcp_servers for JSON, mcp_config for paths",
    "mcp_servers": "mcp_servers",
    "agents": "subagents",
    "subagents": "subagents",
    "json_schema": "json_schema",
    "output_type": "json_schema",
    "extra_args": "extra_args",
    "claude": "claude",
    "cwd": "directory",
    "env": "env",
    "file_checkpointing": "always on in sessions of the hub",
}
"""Options that a spec has in another form, or the command beside it."""

NOT_CARRIED = {
    "session_id": "a session of the hub has more than one conversation, as after a plan with a"
    " fresh start; choose its id with `session`",
    "resume_drops_turn": "the hub never cuts a conversation off; fork it at a message",
    "session_persistence": "the hub resumes a session from the CLI's transcript",
    "permission_prompts": "the hub decides or asks about every call",
    "allow_dangerously_skip_permissions": "in a session of the hub, leave to skip permissions is"
    " leave that is used; say dangerously_skip_permissions",
    "replay_user_messages": "the hub needs it to know which prompt a turn took",
    "bare": "the CLI then calls no hooks, and the hub's rules would not hold for what it allows by"
    " itself; safe_mode keeps them",
    "sdk_url": "the machine's runner holds the link to the CLI",
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
        cli_session=options.resume,
        cli_fork=options.fork_session,
        cli_at=options.resume_session_at,
        cli_latest=options.continue_,
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

    def maybe(self, option: str, path: AnyPath | None) -> str | None:
        return None if path is None else self.of(option, path)

    def all(self, option: str, paths: tuple[AnyPath, ...]) -> tuple[str, ...]:
        return tuple(self.of(option, path) for path in paths)


def _spec(options: Options, paths: _Paths) -> SessionSpec:
    texts = [os.fspath(each) for each in options.mcp_config]
    files = tuple(text for text in texts if not _is_json(text))
    given = options.settings
    if given is not None and not _is_json(os.fspath(given)):
        given = paths.of("settings", given)
    settings = merged_settings(given, None, options.sandbox, options.plugins)
    skip = options.dangerously_skip_permissions
    mode = options.permission_mode
    return SessionSpec(
        directory=paths.of("cwd", options.cwd or "."),
        name=options.name or options.title,
        thinking_mode=options.thinking,
        # The flag that skips permissions overrides any mode.
        mode=None if skip else mode,
        skip_permissions=skip or mode == BYPASS,
        system_prompt_file=paths.maybe("system_prompt_file", options.system_prompt_file),
        append_system_prompt_file=paths.maybe(
            "append_system_prompt_file", options.append_system_prompt_file
        ),
        debug_file=paths.maybe("debug_file", options.debug_file),
        settings=None if settings is None else os.fspath(settings),
        add_dirs=paths.all("add_dirs", options.add_dirs),
        plugin_dirs=paths.all(
            "plugin_dirs", (*options.plugin_dirs, *plugin_folders(options.plugins))
        ),
        mcp_servers=_servers(options, [text for text in texts if _is_json(text)]),
        mcp_config=paths.all("mcp_config", files),
        subagents=_subagents(options),
        json_schema=_schema(options),
        extra_args=dict(options.extra_args),
        claude=_cli(options, paths),
        env=dict(options.env),
        **{name: getattr(options, name) for name in SAME},
    )


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
