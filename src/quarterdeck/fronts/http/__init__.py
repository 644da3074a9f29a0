"""HTTP and WebSocket: the hub for browsers and programs.

`make_app` makes the ASGI app and `serve` runs it; `Access` authenticates. Above are the commands
of the terminal; below is `hub.api`, and nothing else of the hub.

The web framework is loaded when it is first used: it takes a third of a second, which a command
that makes a token need not wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.fronts.http.access import Access, login_link
    from quarterdeck.fronts.http.app import make_app
    from quarterdeck.fronts.http.connection import Pace
    from quarterdeck.fronts.http.origins import Places
    from quarterdeck.fronts.http.pages import built_web
    from quarterdeck.fronts.http.request_metrics import Requests
    from quarterdeck.fronts.http.roles import Person
    from quarterdeck.fronts.http.server import Listen, serve
    from quarterdeck.protocol.roles import Right, Role

__all__ = [
    "Access",
    "Listen",
    "Pace",
    "Person",
    "Places",
    "Requests",
    "Right",
    "Role",
    "built_web",
    "login_link",
    "make_app",
    "serve",
]

__getattr__ = load_later(
    __name__,
    {
        "access": ("Access", "login_link"),
        "app": ("make_app",),
        "connection": ("Pace",),
        "request_metrics": ("Requests",),
        "pages": ("built_web",),
        "origins": ("Places",),
        "roles": ("Person", "Right", "Role"),
        "server": ("Listen", "serve"),
    },
)
