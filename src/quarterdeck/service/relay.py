"""The relay as a part of the service: who may use it, and its own port.

Owns how the relay of `fronts.relay` is put behind the gate of `fronts.http`; neither front knows
the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quarterdeck.config import Settings
from quarterdeck.fronts.http import Access, Listen, serve
from quarterdeck.fronts.http.asgi import ASGIApp
from quarterdeck.fronts.http.relay_access import RelayAccess, caller_of
from quarterdeck.fronts.relay import RelayEndpoint, RelayPort
from quarterdeck.hub.api import HubApi
from quarterdeck.service.settings import relay_rules


def make_relay(hub: HubApi, access: Access, settings: Settings) -> RelayAccess:
    """The relay, with its access rules."""
    return RelayAccess(access, RelayEndpoint(hub, caller_of), relay_rules(settings))


@asynccontextmanager
async def relay_port(app: ASGIApp, settings: Settings) -> AsyncIterator[str | None]:
    """Serve the relay on a port of its own while the block runs; gives its address, if it has one.

    It listens on this machine only, and without TLS: that is where frontends look for it. On the
    hub's own port the relay is served in any case.
    """
    port = settings.relay.port
    if not settings.relay.enabled or port is None or port == settings.server.port:
        yield None
        return
    async with serve(RelayPort(app), Listen(port=port)) as address:
        yield "ws" + address.removeprefix("http")


def relay_lines(address: str, own_port: str | None) -> list[str]:
    """What the terminal says about the relay."""
    base = own_port or "ws" + address.removeprefix("http")
    return [
        f"The relay is at {base}/ws for frontends, and at {base}/ for CLIs up to 2.1.120.",
        "A frontend needs a token: quarterdeck token --role operator --name NAME",
        "For the command line of a CLI run: quarterdeck token --cli",
    ]
