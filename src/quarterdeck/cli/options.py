"""The options that `run` and `new` share: what an agent is started with."""

from __future__ import annotations

from typing import Annotated

import typer

Claude = Annotated[str | None, typer.Option("--claude", help="The CLI to start, by its path.")]
Model = Annotated[str | None, typer.Option("--model", help="The model.")]
Effort = Annotated[
    str | None, typer.Option("--effort", help="How hard to think: low, medium, high.")
]
MaxTurns = Annotated[int | None, typer.Option("--max-turns", help="Rounds of model and tools.")]
MaxBudget = Annotated[
    float | None, typer.Option("--max-budget-usd", help="Stop when it costs more.")
]
SystemPrompt = Annotated[
    str | None, typer.Option("--system-prompt", help="In place of the CLI's own.")
]
AppendSystemPrompt = Annotated[
    str | None, typer.Option("--append-system-prompt", help="Added to it.")
]
Mode = Annotated[
    str | None,
    typer.Option(
        "--permission-mode",
        "--mode",
        help="default, acceptEdits, plan, dontAsk, auto, bypassPermissions.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        "--allowed-tools",
        metavar="RULE",
        help="A rule for what needs no question, as in 'Bash(git status:*)'. Repeatable.",
    ),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny",
        "--disallowed-tools",
        metavar="RULE",
        help="A rule for what is never done. Repeatable.",
    ),
]
McpConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp-config", metavar="FILE|JSON", help="MCP servers: a file, or JSON. Repeatable."
    ),
]
Settings = Annotated[
    str | None,
    typer.Option("--settings", metavar="FILE|JSON", help="More settings: a file, or JSON."),
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="A variable for the CLI. Repeatable."),
]
SkipPermissions = Annotated[
    bool, typer.Option("--dangerously-skip-permissions", help="Ask about nothing at all.")
]
