"""The hub's commands: their names, options and help texts.

As in `cli.app`, nothing happens here: each command hands plain values to a module of its own, which
is loaded only then.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

HOST, PORT = "127.0.0.1", 8765


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the hub's commands. `finish` runs a command and ends with its exit code."""

    @app.command("serve")
    def _serve(
        host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = HOST,
        port: Annotated[
            int, typer.Option("--port", "-p", min=0, max=65535, help="0 takes a free one.")
        ] = PORT,
        certificate: Annotated[
            Path | None, typer.Option("--certificate", help="A TLS certificate, as a PEM file.")
        ] = None,
        key: Annotated[
            Path | None, typer.Option("--key", help="Its key, if it is in another file.")
        ] = None,
    ) -> None:
        """Serve the hub: many agents, from a browser, a terminal and programs."""
        from quarterdeck.cli.deck.serve import run_serve

        finish(run_serve, host, port, certificate, key)
