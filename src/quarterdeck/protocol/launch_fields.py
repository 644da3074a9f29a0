"""The members of `SessionSpec` that are launch options.

Written by tools/write_launch_options.py from `domain.launch_options`: do not edit.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, field

from quarterdeck.domain.structs import Value


class LaunchMembers(Value):
    """What a session's CLI is started with."""

    name: str | None = None
    worktree: str | None = None
    """Work in a git worktree of the directory's repository, on a branch of this name."""
    model: str | None = None
    fallback_model: str | None = None
    """The model to use while `model` is overloaded; several are separated by commas."""
    effort: str | None = None
    thinking_mode: Literal["adaptive", "disabled"] | None = None
    """Whether the model thinks. `max_thinking_tokens` overrides it."""
    thinking_display: str | None = None
    max_thinking_tokens: int | None = None
    """How much the model may think; 0 turns thinking off. The newest models use `effort` only."""
    max_turns: int | None = None
    max_budget_usd: float | None = None
    """The CLI's own limit for one run; `budget` is the hub's."""
    task_budget: int | None = None
    """Tokens that the model has for its task, as its prompt says."""
    betas: tuple[str, ...] = ()
    system_prompt: str | None = None
    system_prompt_file: str | None = None
    """A file of the machine, in place of `system_prompt`. The agent cannot change it."""
    append_system_prompt: str | None = None
    append_system_prompt_file: str | None = None
    exclude_dynamic_system_prompt_sections: bool = False
    plan_mode_instructions: str | None = None
    tools: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    mode: str | None = None
    skip_permissions: bool = False
    """Ask nothing, except where a rule asks or denies. Never a default: a person must set it.
    Without a `mode` the CLI starts with its permissions bypassed."""
    settings: str | None = None
    setting_sources: tuple[str, ...] | None = None
    """Which settings files the CLI reads: `user`, `project`, `local`; empty: none."""
    add_dirs: tuple[str, ...] = ()
    mcp_config: tuple[str, ...] = ()
    """Files of the machine with more MCP servers. The agent cannot change them."""
    strict_mcp_config: bool = False
    """Only these MCP servers, none of the CLI's settings."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of the machine with plugins, which may run programs. The agent cannot change them."""
    agent: str | None = None
    """The name of the agent that the conversation is with, of `subagents` or of the settings."""
    subagents: dict[str, Raw] = field(default_factory=dict)
    """Subagents by name, as the CLI defines them. They are arguments of its process, which others
    on the machine can read: secrets belong into `env` or `mcp_servers`."""
    disable_slash_commands: bool = False
    safe_mode: bool = False
    restricted: bool = False
    include_partial_messages: bool = True
    """Whether text is shown while it is generated."""
    include_hook_events: bool = False
    forward_subagent_text: bool = False
    prompt_suggestions: bool = False
    session_mirror: bool = False
    """The CLI also sends each line that it writes to its transcript."""
    json_schema: dict[str, Raw] | None = None
    """The schema of the object that each turn ends with, in `structured` of `turn.ended`."""
    debug_file: str | None = None
    """A file of the machine that the CLI writes its log to."""
