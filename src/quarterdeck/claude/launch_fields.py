"""The fields of `Launch`.

Written by tools/write_launch_options.py from `domain.launch_options`: do not edit.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from quarterdeck.domain.launch_options import AnyPath


class LaunchFields(msgspec.Struct, frozen=True, kw_only=True):
    """The options that are flags of the CLI."""

    # The session.
    resume: str | None = None
    continue_: bool = False
    fork_session: bool = False
    session_id: str | None = None
    resume_session_at: str | None = None
    resume_drops_turn: str | None = None
    session_persistence: bool = True
    name: str | None = None
    worktree: str | None = None

    # The model and its limits.
    model: str | None = None
    fallback_model: str | None = None
    effort: str | None = None
    thinking: Literal["adaptive", "disabled"] | None = None
    thinking_display: str | None = None
    max_thinking_tokens: int | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    task_budget: int | None = None
    betas: tuple[str, ...] = ()

    # The prompts. With none of these the CLI uses its own, which is what Claude Code is.
    system_prompt: str | None = None
    system_prompt_file: AnyPath | None = None
    append_system_prompt: str | None = None
    append_system_prompt_file: AnyPath | None = None
    exclude_dynamic_system_prompt_sections: bool = False
    plan_mode_instructions: str | None = None

    # Tools and permissions. `tools=()` means no tools, None means the default ones.
    tools: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    permission_mode: str | None = None
    dangerously_skip_permissions: bool = False
    allow_dangerously_skip_permissions: bool = False

    # Settings and extensions. `setting_sources=()` means no settings files at all.
    settings: AnyPath | None = None
    setting_sources: tuple[str, ...] | None = None
    add_dirs: tuple[AnyPath, ...] = ()
    mcp_config: tuple[AnyPath, ...] = ()
    strict_mcp_config: bool = False
    plugin_dirs: tuple[AnyPath, ...] = ()
    agent: str | None = None
    agents: str | None = None
    disable_slash_commands: bool = False
    bare: bool = False
    safe_mode: bool = False
    restricted: bool = False

    # Output.
    include_partial_messages: bool = True
    replay_user_messages: bool = True
    include_hook_events: bool = False
    forward_subagent_text: bool = False
    prompt_suggestions: bool = False
    session_mirror: bool = False
    json_schema: str | None = None
    debug_file: AnyPath | None = None

    # Transport: None is stdin and stdout, else the WebSocket that the CLI connects to.
    sdk_url: str | None = None
