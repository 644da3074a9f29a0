"""The command of the MCP server: `mcp`."""

from __future__ import annotations

from quarterdeck.cli.commands.base import HubOptions, app, finish, spread


@app.command("mcp")
@spread
def _mcp(*, at: HubOptions) -> None:
    """Serve the hub's tools as an MCP server on stdin and stdout.

    The token is that of an agent's run, or a person's: from --token-file, or from
    QUARTERDECK_TOKEN. The address is --hub, or QUARTERDECK_URL.
    """
    from quarterdeck.cli.hub.mcp import run_mcp

    finish(run_mcp, at.target)
