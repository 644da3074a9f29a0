"""The command of the relay: `relay`."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.cli.commands.base import Config, ServeOptions, app, finish, spread


@app.command("relay")
@spread
def _relay(
    config: Config = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            min=1,
            max=65535,
            help="A port of its own for the relay; by default it is on the hub's only.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="URL",
            help="Let pages from this origin on this machine in without a token. Repeatable.",
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option("--role", help="What such pages may do: viewer (the default) or operator."),
    ] = None,
    *,
    serving: ServeOptions,
) -> None:
    """Serve the hub with the relay: frontends that speak the CLI's own lines connect to /ws.

    It is `quarterdeck serve` with `[relay] enabled = true`. If a hub is running already, set that
    in its configuration instead.
    """
    from quarterdeck.cli.hub.relay import run_relay

    finish(run_relay, config, port, allow_origin or [], role, **serving.arguments)
