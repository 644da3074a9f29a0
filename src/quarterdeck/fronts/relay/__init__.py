"""The relay: frontends that speak the CLI's own lines, as a front of the hub.

`RelayEndpoint` is the ASGI app for frontends at `/ws`; `RelayPort` restricts an app to what a port
of the relay serves. Above is the service, which puts both behind the gate of the HTTP front; below
is `hub.api`, and nothing else of the hub.
"""

from __future__ import annotations

from quarterdeck.fronts.relay.endpoint import RelayEndpoint as RelayEndpoint
from quarterdeck.fronts.relay.port import RelayPort as RelayPort
