"""`quarterdeck config` and `quarterdeck service`: names, options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Config, Json


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands. `finish` runs a command and ends with its exit code."""
    _register_config(app, finish)
    _register_service(app, finish)


def _register_config(app: typer.Typer, finish: Callable[..., Any]) -> None:
    config = typer.Typer(
        help="The configuration of the hub: quarterdeck.toml.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(config, name="config")

    @config.command("show")
    def _show(config: Config = None, json_output: Json = False) -> None:
        """Print every setting with its value and where that comes from; secrets are hidden."""
        from quarterdeck.cli.local.config import run_show

        finish(run_show, config, json_output=json_output)

    @config.command("check")
    def _check(
        file: Annotated[
            Path | None, typer.Argument(help="Check this file and not the one that is used.")
        ] = None,
        config: Config = None,
    ) -> None:
        """Tell everything that is wrong with it, each with its line. The exit code is then 1."""
        from quarterdeck.cli.local.config import run_check

        finish(run_check, file or config)

    @config.command("path")
    def _path(config: Config = None) -> None:
        """Print where the file is. The exit code is 1 when there is none."""
        from quarterdeck.cli.local.config import run_path

        finish(run_path, config)


def _register_service(app: typer.Typer, finish: Callable[..., Any]) -> None:
    service = typer.Typer(
        help="Have the hub started by the service manager of this machine: systemd or launchd.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(service, name="service")

    @service.command("install")
    def _install(
        config: Config = None,
        only_print: Annotated[
            bool, typer.Option("--print", help="Print the unit, and change nothing.")
        ] = False,
        no_start: Annotated[
            bool, typer.Option("--no-start", help="Write the unit, and do not start it.")
        ] = False,
        manager: Annotated[
            str | None,
            typer.Option("--manager", help="systemd or launchd; else the one of this platform."),
        ] = None,
    ) -> None:
        """Write a unit for this user, with the data folder as it is now, and start the hub."""
        from quarterdeck.cli.local.service import run_install

        finish(run_install, config, manager, only_print=only_print, start=not no_start)

    @service.command("uninstall")
    def _uninstall() -> None:
        """Stop the hub, and remove the unit. Agents go on; the data stays."""
        from quarterdeck.cli.local.service import run_uninstall

        finish(run_uninstall)

    @service.command("status")
    def _status() -> None:
        """Tell whether there is a unit, and what its manager says of it."""
        from quarterdeck.cli.local.service import run_status

        finish(run_status)
