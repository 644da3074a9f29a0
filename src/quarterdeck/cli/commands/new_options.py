"""The options of `new` for members of a spec that `run` has no option for.

Owns their declarations. From their texts to values is a step of `cli.hub.spec`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer


class NewOptions(NamedTuple):
    """What a session's CLI is started with, beside what `run` can say as well."""

    cli_latest: Annotated[
        bool,
        typer.Option("--continue", help="Continue the newest conversation of the folder."),
    ] = False
    cli_fork: Annotated[
        bool, typer.Option("--fork", help="With --resume or --continue: in a copy.")
    ] = False
    fallback_model: Annotated[
        str | None, typer.Option("--fallback-model", help="The model while the first is busy.")
    ] = None
    json_schema: Annotated[
        str | None,
        typer.Option(
            "--json-schema", metavar="FILE|JSON", help="The schema of the object a turn ends with."
        ),
    ] = None
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Talk to this agent.")
    ] = None
    subagents: Annotated[
        str | None,
        typer.Option("--subagents", metavar="FILE|JSON", help="Subagents: a file or JSON."),
    ] = None
    plugin_dirs: Annotated[
        list[str] | None,
        typer.Option("--plugin-dir", metavar="FOLDER", help="A plugin. Repeatable."),
    ] = None
    setting_sources: Annotated[
        str | None,
        typer.Option(
            "--setting-sources",
            metavar="LIST",
            help="Which settings files are read: user,project,local; '' is none.",
        ),
    ] = None
    strict_mcp_config: Annotated[
        bool, typer.Option("--strict-mcp-config", help="Only the MCP servers given here.")
    ] = False
    include_hook_events: Annotated[
        bool, typer.Option("--hook-events", help="Keep what the CLI tells of its hooks.")
    ] = False
    session_mirror: Annotated[
        bool,
        typer.Option("--session-mirror", help="Another machine can resume it (CLI 2.1.97)."),
    ] = False
    extra_args: Annotated[
        list[str] | None,
        typer.Option(
            "--cli-flag",
            metavar="NAME[=VALUE]",
            help="A flag of the CLI that has no option here. Repeatable.",
        ),
    ] = None

    def members(self, *, here: bool) -> dict[str, Any]:
        """As `SessionSpec` has them. Raises `UsageError`."""
        from quarterdeck.cli.hub import spec as values

        sources = self.setting_sources
        return {
            "fallback_model": self.fallback_model,
            "json_schema": values.json_members(self.json_schema, "--json-schema"),
            "agent": self.agent,
            "subagents": values.json_members(self.subagents, "--subagents") or {},
            "plugin_dirs": tuple(
                values.absolute(each, here=here) for each in self.plugin_dirs or ()
            ),
            "setting_sources": None if sources is None else values.comma_list(sources),
            "strict_mcp_config": self.strict_mcp_config,
            "session_mirror": self.session_mirror,
            "include_hook_events": self.include_hook_events,
            "extra_args": values.cli_flags(self.extra_args or []),
        }
