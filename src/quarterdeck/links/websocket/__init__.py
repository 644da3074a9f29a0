"""Links over a WebSocket: accept CLIs that dial (`--sdk-url`, up to 2.1.120), or dial ourselves."""

from __future__ import annotations

from quarterdeck.links.websocket.accept import CliEndpoint, Door
from quarterdeck.links.websocket.dial import DialLink, Redial
from quarterdeck.links.websocket.link import WebSocketLink
from quarterdeck.links.websocket.serve import serve_endpoint

__all__ = ["CliEndpoint", "DialLink", "Door", "Redial", "WebSocketLink", "serve_endpoint"]
