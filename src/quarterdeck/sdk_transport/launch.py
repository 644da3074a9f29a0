"""The SDK's options as a launch: flags, environment, command.

Owns the translation; it starts no process. The SDK does not pass its options to a transport that it
was given, so the flags must be built here. The SDK itself sends the options that travel in
`initialize` (hooks, agents, skills …).

Where the SDK has its own defaults, they are kept: a program must not notice the difference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import claude_agent_sdk
import msgspec
from claude_agent_sdk import ClaudeAgentOptions

from quarterdeck.claude.launch import ArgumentFiles, Launch, read_settings, to_argv
from quarterdeck.claude.locate import find_claude
from quarterdeck.domain.errors import UsageError

_STATES = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
"""With it the CLI reports the end of a run, marked as not for the program."""


def command_for(options: ClaudeAgentOptions, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The CLI to start: the given path, else the SDK's own, else the installed one."""
    if options.cli_path is not None:
        return find_claude(options.cli_path, environ=environ)
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    return find_claude(bundled if bundled.is_file() else None, environ=environ)


def argv_for(options: ClaudeAgentOptions, files: ArgumentFiles) -> list[str]:
    """The CLI's arguments. `extra_args` come last, so that they win, as with the SDK."""
    argv = to_argv(launch_for(options), files)
    for name, value in options.extra_args.items():
        argv.append(f"--{name}" if value is None else f"--{name}={value}")
    return argv


def environment_for(options: ClaudeAgentOptions, parent: Mapping[str, str]) -> dict[str, str]:
    """The CLI's environment: all of `parent`, and the variables that the SDK adds."""
    env = {
        **parent,
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        **options.env,
        "CLAUDE_AGENT_SDK_VERSION": claude_agent_sdk.__version__,
    }
    env.pop("CLAUDECODE", None)  # a CLI that sees it takes itself for a nested one
    env.setdefault(_STATES, "1")
    if options.client_app is not None:
        env["CLAUDE_AGENT_SDK_CLIENT_APP"] = options.client_app
    if options.enable_file_checkpointing:
        env["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "true"
    if options.cwd:
        env["PWD"] = str(options.cwd)
    return env


def launch_for(options: ClaudeAgentOptions) -> Launch:
    """The options that are flags. Raises `UsageError` for those that cannot be kept."""
    _refuse(options)
    resuming = bool(options.resume or options.continue_conversation)
    launch = Launch(
        resume=options.resume or None,
        continue_=options.continue_conversation,
        fork_session=options.fork_session and resuming,
        session_id=options.session_id or None,
        resume_session_at=options.resume_session_at or None,
        resume_drops_turn=options.resume_drops_turn,
        model=options.model or None,
        fallback_model=options.fallback_model or None,
        effort=options.effort,
        max_turns=options.max_turns or None,
        max_budget_usd=options.max_budget_usd,
        task_budget=options.task_budget["total"] if options.task_budget else None,
        betas=tuple(options.betas),
        tools=_tools(options),
        allowed_tools=_allowed_tools(options),
        disallowed_tools=tuple(options.disallowed_tools),
        permission_mode=options.permission_mode,
        permission_prompts=_asks(options),
        settings=_settings(options),
        setting_sources=_setting_sources(options),
        add_dirs=tuple(options.add_dirs),
        mcp_config=_mcp_config(options),
        strict_mcp_config=options.strict_mcp_config,
        plugin_dirs=_plugins(options),
        include_partial_messages=options.include_partial_messages,
        replay_user_messages=False,
        include_hook_events=options.include_hook_events,
        session_mirror=options.session_store is not None,
        json_schema=_json_schema(options),
    )
    return _with_thinking(options, _with_system_prompt(options, launch))


def _refuse(options: ClaudeAgentOptions) -> None:
    if options.user is not None:
        raise UsageError("user: a link starts the CLI as the user who runs this program")
    if options.permission_prompt_tool_name not in (None, "", "stdio"):
        raise UsageError("permission_prompt_tool_name: only can_use_tool is supported over a link")
    if options.session_store is not None and (options.resume or options.continue_conversation):
        # The SDK copies the stored session to disk only for a transport that it made itself.
        raise UsageError("session_store: the SDK does not resume from it over a transport")


def _asks(options: ClaudeAgentOptions) -> bool:
    return options.can_use_tool is not None or bool(options.permission_prompt_tool_name)


def _with_system_prompt(options: ClaudeAgentOptions, launch: Launch) -> Launch:
    match options.system_prompt:
        case None:  # as the SDK does: an empty system prompt, not Claude Code's own
            return msgspec.structs.replace(launch, system_prompt="")
        case str(text):
            return msgspec.structs.replace(launch, system_prompt=text)
        case {"type": "custom", "prompt": str(text)}:
            return msgspec.structs.replace(launch, system_prompt=text)
        case {"type": "file", "path": path}:
            return msgspec.structs.replace(launch, system_prompt_file=str(path))
        case {"type": "preset", "append": str(text)} if text:
            return msgspec.structs.replace(launch, append_system_prompt=text)
        case _:
            return launch


def _with_thinking(options: ClaudeAgentOptions, launch: Launch) -> Launch:
    thinking = options.thinking
    if thinking is None:
        return msgspec.structs.replace(launch, max_thinking_tokens=options.max_thinking_tokens)
    display = None if thinking["type"] == "disabled" else thinking.get("display")
    if thinking["type"] == "enabled":
        return msgspec.structs.replace(
            launch, max_thinking_tokens=thinking["budget_tokens"], thinking_display=display
        )
    return msgspec.structs.replace(launch, thinking=thinking["type"], thinking_display=display)


def _tools(options: ClaudeAgentOptions) -> tuple[str, ...] | None:
    match options.tools:
        case None:
            return None
        case list(names):
            return tuple(names)
        case _:
            return ("default",)  # the preset


def _allowed_tools(options: ClaudeAgentOptions) -> tuple[str, ...]:
    skills = options.skills
    if skills is None:
        names: list[str] = []
    elif skills == "all":
        names = ["Skill"]
    elif isinstance(skills, list):
        names = [f"Skill({_skill(name)})" for name in skills]
    else:
        raise UsageError(f'skills: a list of names or "all" is expected, not {skills!r}')
    return tuple(dict.fromkeys([*options.allowed_tools, *names]))


def _skill(name: str) -> str:
    # The CLI splits the list at commas and blanks outside of brackets, and has no quoting.
    if not name.strip() or name != name.strip() or any(odd in name for odd in "(),*\\\n"):
        raise UsageError(f"skills: {name!r} is not a name that a rule can contain")
    return name


def _setting_sources(options: ClaudeAgentOptions) -> tuple[str, ...] | None:
    if options.setting_sources is not None:
        return tuple(options.setting_sources)
    return ("user", "project") if options.skills is not None else None


def _settings(options: ClaudeAgentOptions) -> str | None:
    if options.sandbox is None:
        return options.settings or None
    given = (options.settings or "").strip() or None
    settings = read_settings(given, Path(options.cwd or ""))
    return msgspec.json.encode({**settings, "sandbox": options.sandbox}).decode()


def _mcp_config(options: ClaudeAgentOptions) -> tuple[str, ...]:
    servers = options.mcp_servers
    if not isinstance(servers, dict):
        return (str(servers),) if servers else ()
    if not servers:
        return ()
    # An in-process server is known to the CLI by its name only; the SDK answers for it.
    plain = {
        name: {key: value for key, value in config.items() if key != "instance"}
        for name, config in servers.items()
    }
    return (msgspec.json.encode({"mcpServers": plain}).decode(),)


def _plugins(options: ClaudeAgentOptions) -> tuple[str | os.PathLike[str], ...]:
    for plugin in options.plugins:
        if plugin["type"] != "local":
            raise UsageError(f"plugins: {plugin['type']!r} is not a type that the CLI can load")
    return tuple(plugin["path"] for plugin in options.plugins)


def _json_schema(options: ClaudeAgentOptions) -> str | None:
    match options.output_format:
        case {"type": "json_schema", "schema": dict(schema)}:
            return msgspec.json.encode(schema).decode()
        case _:
            return None
