"""`quarterdeck mcp`: an MCP server on stdin and stdout that passes everything on to the hub."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from quarterdeck.cli.hub.target import Target, address_of
from quarterdeck.client.calls import HubAddress
from quarterdeck.client.local import CA_VARIABLE, INSECURE_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE
from quarterdeck.domain.errors import UsageError
from quarterdeck.hub.agent_tokens import is_agent_form
from quarterdeck.runtime.agent_process import refuse_agents


def run_mcp(target: Target) -> int:
    """Serve until stdin ends."""
    from quarterdeck.fronts.mcp.bridge import run_bridge

    where = _where(target)
    if not is_agent_form(where.token):
        refuse_agents("a person's token")
    anyio.run(run_bridge, where)
    return 0


def _where(target: Target) -> HubAddress:
    """The hub and the token, which must be named: a person's own token is not taken unasked."""
    if target.hub is not None and target.token_file is not None:
        return address_of(target)
    address = target.hub or os.environ.get(URL_VARIABLE)
    token = os.environ.get(TOKEN_VARIABLE)
    if not address or not token:
        raise UsageError(
            f"name the hub and the token: --hub and --token-file, or {URL_VARIABLE}"
            f" and {TOKEN_VARIABLE}"
        )
    ca_file = os.environ.get(CA_VARIABLE)
    return HubAddress(
        address=address,
        token=token,
        insecure=target.insecure or os.environ.get(INSECURE_VARIABLE) == "1",
        ca_file=target.ca_file or (Path(ca_file) if ca_file else None),
    )
