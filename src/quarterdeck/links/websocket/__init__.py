"""Links over a WebSocket: accept CLIs that dial (`--sdk-url`, up to 2.1.120), or dial ourselves.

Names are imported when they are first used: a program that only dials does not load a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.links.websocket.accept import CliEndpoint, LinkAccess, serve_endpoint
    from quarterdeck.links.websocket.dial import DialLink, Redial
    from quarterdeck.links.websocket.link import WebSocketLink

__all__ = ["CliEndpoint", "DialLink", "LinkAccess", "Redial", "WebSocketLink", "serve_endpoint"]

__getattr__ = load_later(
    __name__,
    {
        "accept": ("CliEndpoint", "LinkAccess", "serve_endpoint"),
        "dial": ("DialLink", "Redial"),
        "link": ("WebSocketLink",),
    },
)
