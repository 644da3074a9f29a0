"""Commands about the configuration of the hub, and about running it by a service manager."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import Config, Json, add_group, finish

_config = add_group("config", "The configuration of the hub: quarterdeck.toml.")
_service = add_group("service", "Run the hub as a service of this user: systemd or launchd.")


@_config.command("show")
def _show(config: Config = None, json_output: Json = False) -> None:
    """Print every setting, its value and its source. Secrets are hidden."""
    from quarterdeck.cli.local.config import run_show

    finish(run_show, config, json_output=json_output)


@_config.command("check")
def _check(
    file: Annotated[
        Path | None, typer.Argument(help="Check this file instead of the one in use.")
    ] = None,
    config: Config = None,
) -> None:
    """Print every problem with its line. The exit code is 1 if there is one."""
    from quarterdeck.cli.local.config import run_check

    finish(run_check, file or config)


@_config.command("path")
def _path(config: Config = None) -> None:
    """Print the path of the file. The exit code is 1 if it does not exist."""
    from quarterdeck.cli.local.config import run_path

    finish(run_path, config)


@_service.command("install")
def _install(
    config: Config = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the unit and change nothing.")
    ] = False,
    no_start: Annotated[
        bool, typer.Option("--no-start", help="Write the unit, but do not start it.")
    ] = False,
    manager: Annotated[
        str | None,
        typer.Option("--manager", help="systemd or launchd; by default this platform's."),
    ] = None,
) -> None:
    """Write a unit for this user with the current data folder, and start the hub."""
    from quarterdeck.cli.local.service import run_install

    finish(run_install, config, manager, only_print=only_print, start=not no_start)


@_service.command("uninstall")
def _uninstall() -> None:
    """Stop the hub and remove the unit. Agents keep running, and the data stays."""
    from quarterdeck.cli.local.service import run_uninstall

    finish(run_uninstall)


@_service.command("status")
def _status() -> None:
    """Show whether a unit is installed, and the state that its manager reports."""
    from quarterdeck.cli.local.service import run_status

    finish(run_status)
