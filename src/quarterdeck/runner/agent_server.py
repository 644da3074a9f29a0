"""The hub's MCP server in the launch of a CLI whose agent may direct others. Pure.

The hub makes a token for each run; the runner knows the address at which this machine reaches the
hub. Neither is part of the session's spec, which people can read.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.protocol.runner_frames import Start
from quarterdeck.protocol.sandbox import OFF, STRICT, SandboxRequest

SERVER = "quarterdeck"
"""The name of the server: its tools are `mcp__quarterdeck__…`."""
PATH = "/mcp"
CA_VARIABLE = "NODE_EXTRA_CA_CERTS"


def with_agent_server(start: Start, hub_url: str, ca_file: Path | None = None) -> Start:
    """The same start, with the hub's server and the run's token, if it has one.

    A server of that name in the spec is replaced: it could be taken for the hub's. A sandbox with a
    limited network lets the CLI reach the hub, too.
    """
    spec = start.spec
    if not start.agent_token:
        return start
    server = {
        "type": "http",
        "url": "http" + hub_url.removeprefix("ws") + PATH,
        "headers": {"Authorization": f"Bearer {start.agent_token}"},
    }
    env = dict(spec.env)
    if ca_file is not None and hub_url.startswith("wss:"):
        env.setdefault(CA_VARIABLE, str(ca_file))
    servers = {**spec.mcp_servers, SERVER: Raw(msgspec.json.encode(server))}
    return replace(
        start,
        spec=replace(spec, mcp_servers=servers, env=env),
        sandbox=_with_host(start.sandbox, hub_url),
    )


def _with_host(sandbox: SandboxRequest | None, hub_url: str) -> SandboxRequest | None:
    if sandbox is None or sandbox.mode == OFF:
        return sandbox
    options = sandbox.options
    network = options.network or ("model" if sandbox.mode == STRICT else "all")
    if network == "all":
        return sandbox
    parts = urlsplit(hub_url)
    port = parts.port or (443 if parts.scheme == "wss" else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    listed = () if network == "model" else tuple(network)  # the model's host is always added
    return replace(sandbox, options=replace(options, network=(*listed, f"{host}:{port}")))
