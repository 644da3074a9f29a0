"""Links over a WebSocket: accept CLIs that dial (`--sdk-url`, up to 2.1.120), or dial ourselves.

The names are loaded when they are first used: who only dials need not wait for a server's library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.links.websocket.accept import CliEndpoint, Door
    from quarterdeck.links.websocket.dial import DialLink, Redial
    from quarterdeck.links.websocket.link import WebSocketLink
    from quarterdeck.links.websocket.serve import serve_endpoint

__all__ = ["CliEndpoint", "DialLink", "Door", "Redial", "WebSocketLink", "serve_endpoint"]

_HOMES = {
    "CliEndpoint": "accept",
    "DialLink": "dial",
    "Door": "accept",
    "Redial": "dial",
    "WebSocketLink": "link",
    "serve_endpoint": "serve",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
