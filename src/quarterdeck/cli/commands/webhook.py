"""`quarterdeck webhook`: the names, options and help texts of its commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Config


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands. `finish` runs a command and ends with its exit code."""
    webhooks = typer.Typer(
        help="Those who are told of what happens: try one, or make a secret.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(webhooks, name="webhook")

    @webhooks.command("test")
    def _test(
        name: Annotated[str, typer.Argument(help="A webhook of the configuration, or an address.")],
        event: Annotated[
            str, typer.Option("--event", help="The kind of event to send a sample of.")
        ] = "ask.opened",
        secret_file: Annotated[
            Path | None,
            typer.Option("--secret-file", help="Signs it; else the configuration's, or the hub's."),
        ] = None,
        config: Config = None,
    ) -> None:
        """Send a sample once, and tell what became of it. The exit code is 1 if it was refused."""
        from quarterdeck.cli.hub.webhook import run_webhook_test

        finish(run_webhook_test, name, event, secret_file, config)

    @webhooks.command("secret")
    def _secret() -> None:
        """Make a secret, and print it: one for the secret file, and the same for the receiver."""
        from quarterdeck.cli.hub.webhook import run_webhook_secret

        finish(run_webhook_secret)
