"""The launch options of commands.

Written by tools/write_launch_options.py from `domain.launch_options`: do not edit.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer


class LaunchOptions(NamedTuple):
    """What an agent is started with: by `run` here, and by `new` in the hub."""

    model: Annotated[str | None, typer.Option("--model", help="The model.")] = None
    effort: Annotated[
        str | None, typer.Option("--effort", help="The thinking effort: low, medium, high.")
    ] = None
    max_turns: Annotated[
        int | None, typer.Option("--max-turns", help="The most rounds of model and tools.")
    ] = None
    max_budget_usd: Annotated[
        float | None, typer.Option("--max-budget-usd", help="Stop above this cost in US dollars.")
    ] = None
    system_prompt: Annotated[
        str | None, typer.Option("--system-prompt", help="Replace Claude Code's system prompt.")
    ] = None
    append_system_prompt: Annotated[
        str | None,
        typer.Option("--append-system-prompt", help="Add this to Claude Code's system prompt."),
    ] = None
    allowed_tools: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            "--allowed-tools",
            metavar="RULE",
            help="Allow this without asking, as in 'Bash(git status:*)'. Repeatable.",
        ),
    ] = None
    disallowed_tools: Annotated[
        list[str] | None,
        typer.Option(
            "--deny", "--disallowed-tools", metavar="RULE", help="Never allow this. Repeatable."
        ),
    ] = None
    mode: Annotated[
        str | None,
        typer.Option(
            "--permission-mode",
            "--mode",
            help="default, acceptEdits, plan, dontAsk, auto, bypassPermissions.",
        ),
    ] = None
    skip_permissions: Annotated[
        bool, typer.Option("--dangerously-skip-permissions", help="Never ask for permission.")
    ] = False
    settings: Annotated[
        str | None,
        typer.Option("--settings", metavar="FILE|JSON", help="More settings: a file or JSON."),
    ] = None
    mcp_config: Annotated[
        list[str] | None,
        typer.Option(
            "--mcp-config", metavar="FILE|JSON", help="MCP servers: a file or JSON. Repeatable."
        ),
    ] = None


class NewOptions(NamedTuple):
    """What only `new` can say."""

    cli_session: Annotated[
        str | None, typer.Option("--resume", metavar="ID", help="Resume this session of the CLI.")
    ] = None
    cli_latest: Annotated[
        bool, typer.Option("--continue", help="Continue the newest conversation of the folder.")
    ] = False
    cli_fork: Annotated[
        bool, typer.Option("--fork", help="With --resume or --continue: in a copy.")
    ] = False
    name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None
    worktree: Annotated[
        str | None,
        typer.Option("--worktree", metavar="BRANCH", help="Work in a git worktree of its own."),
    ] = None
    fallback_model: Annotated[
        str | None, typer.Option("--fallback-model", help="The model while the first is busy.")
    ] = None
    tools: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="NAME", help="Only these tools. Repeatable."),
    ] = None
    setting_sources: Annotated[
        str | None,
        typer.Option(
            "--setting-sources",
            metavar="LIST",
            help="Which settings files to read: user,project,local; '' for no file.",
        ),
    ] = None
    add_dirs: Annotated[
        list[str] | None,
        typer.Option("--add-dir", metavar="FOLDER", help="One more folder. Repeatable."),
    ] = None
    strict_mcp_config: Annotated[
        bool, typer.Option("--strict-mcp-config", help="Only the MCP servers given here.")
    ] = False
    plugin_dirs: Annotated[
        list[str] | None,
        typer.Option("--plugin-dir", metavar="FOLDER", help="A plugin. Repeatable."),
    ] = None
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Talk to this agent.")
    ] = None
    subagents: Annotated[
        str | None,
        typer.Option("--subagents", metavar="FILE|JSON", help="Subagents: a file or JSON."),
    ] = None
    include_hook_events: Annotated[
        bool, typer.Option("--hook-events", help="Keep what the CLI reports about its hooks.")
    ] = False
    session_mirror: Annotated[
        bool, typer.Option("--session-mirror", help="Another machine can resume it (CLI 2.1.97).")
    ] = False
    json_schema: Annotated[
        str | None,
        typer.Option(
            "--json-schema", metavar="FILE|JSON", help="The schema of the object a turn ends with."
        ),
    ] = None
