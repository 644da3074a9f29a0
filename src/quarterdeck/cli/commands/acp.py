"""The command for editors: `acp`."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.cli.commands.base import (
    HubOptions,
    ProcessOptions,
    app,
    finish,
    given_options,
    spread,
)
from quarterdeck.cli.commands.launch_options import LaunchOptions


@app.command("acp")
@spread
def _acp(
    *,
    project: Annotated[
        str | None,
        typer.Option("--project", help="New sessions use this project's defaults."),
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="Where new sessions run; by default the hub's.")
    ] = None,
    process: ProcessOptions,
    launch: LaunchOptions,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help="A policy or preset, besides the global one."),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option("--sandbox", help="off, protect or strict; by default as configured."),
    ] = None,
    api_billing: Annotated[
        bool, typer.Option("--api-billing", help="Pass the runner's API key to the CLI.")
    ] = False,
    at: HubOptions,
) -> None:
    """Serve an editor: an agent of the Agent Client Protocol on stdin and stdout.

    The editor starts this command. The other options are those of sessions that it creates.
    """
    from quarterdeck.cli.hub import spec as values
    from quarterdeck.cli.hub.acp import run_acp
    from quarterdeck.protocol.sessions import SessionSpec

    target = at.target
    here = target.is_here and machine is None
    defaults = SessionSpec(
        **values.launch_members(given_options(launch), here=here),
        claude=process.claude,
        env=values.variables(process.env or ()),
        directory="/",  # each session has the editor's folder
        project=project,
        machine=machine,
        policy=policy,
        sandbox=values.sandbox_mode(sandbox),
        api_billing=api_billing,
    )
    finish(run_acp, target, defaults)
