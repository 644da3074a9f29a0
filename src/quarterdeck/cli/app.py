"""The command line as a whole: every command is declared, and one of them is run.

Declarations are in `commands`. Only the command that is called is built: building all of them takes
longer than most commands take to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from importlib import import_module
from typing import Annotated

import typer
from typer.main import get_command

from quarterdeck import __version__
from quarterdeck.cli.commands.base import app, command_name
from quarterdeck.cli.commands.plain_values import take_plain_values

__all__ = ["app", "run_app"]

_DECLARATIONS = (
    "local", "service", "relay", "telegram", "mcp", "acp", "sdk", "sessions", "loop", "schedules",
    "asks", "history", "policy", "usage", "worktrees", "config",
)  # fmt: skip
"""Modules that declare commands on the app, in the order of `--help`."""
for _name in _DECLARATIONS:
    import_module(f"quarterdeck.cli.commands.{_name}")


def run_app(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit code. The library's errors are left to the caller."""
    command = get_command(_app_for(arguments))
    take_plain_values(command)
    try:
        command(list(arguments), prog_name="quarterdeck")
    except SystemExit as end:
        # Typer always ends this way: after a command, after --help, and after a usage error (2).
        return end.code if isinstance(end.code, int) else 0
    return 0


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """The app with only the command that is called; all of it for help and for unknown commands."""
    name = arguments[0] if arguments else None
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [group for group in app.registered_groups if group.name == name]
    if not commands and not groups:
        return app
    part = copy(app)
    part.registered_commands, part.registered_groups = commands, groups
    return part


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"quarterdeck {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Drive Claude Code from the terminal, from scripts and from Python."""
    command_name.set(context.invoked_subcommand or "")
