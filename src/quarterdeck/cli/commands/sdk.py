"""The commands for programs of the official SDK: `sdk run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import add_group, finish

_sdk = add_group("sdk", "Programs of the official SDK, through the hub.")


@_sdk.command(
    "run",
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
)
def _run(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", help="The program: a Python file.")],
    python: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The Python that runs it; by default Quarterdeck's own."),
    ] = None,
) -> None:
    """Run a program of the claude-agent-sdk, unchanged, with its agents in the hub.

    The program gets all arguments after its name. It must not name a CLI itself (cli_path).
    """
    from quarterdeck.program.sdk_run import run_sdk_program

    finish(run_sdk_program, program, context.args, python)
