"""A port of the relay's own: the app of the hub, restricted to what CLIs and frontends dial."""

from __future__ import annotations

from quarterdeck.fronts.relay.asgi import ASGIApp, Receive, Scope, Send
from quarterdeck.runtime.asgi import Answer, refuse_upgrade, respond

_NOT_HERE = Answer(404, "this port has / for CLIs and /ws for frontends only")


class RelayPort:
    """Passes on what CLIs (`/`, `/events`, `/v1/`) and frontends (`/ws`) send; nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection or request."""
        if scope["type"] == "lifespan" or _is_here(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await refuse_upgrade(_NOT_HERE, receive, send)
        else:
            await respond(_NOT_HERE, send)


def _is_here(scope: Scope) -> bool:
    path: str = scope["path"]
    if path.startswith("/v1/"):
        return True
    return path in ({"/", "/ws"} if scope["type"] == "websocket" else {"/events"})
