"""HTTP and WebSocket: the hub for browsers and programs.

`make_app` makes the ASGI app and `serve` runs it; `Access` decides who gets in and `data_home` says
where that is kept. Above are the commands of the terminal; below is `hub.deck`, and nothing else
of the hub.
"""

from quarterdeck.fronts.http.access import Access, login_link
from quarterdeck.fronts.http.app import make_app
from quarterdeck.fronts.http.connection import Pace
from quarterdeck.fronts.http.home import data_home
from quarterdeck.fronts.http.places import Places
from quarterdeck.fronts.http.roles import Person, Right, Role
from quarterdeck.fronts.http.serve import Listen, serve

__all__ = [
    "Access",
    "Listen",
    "Pace",
    "Person",
    "Places",
    "Right",
    "Role",
    "data_home",
    "login_link",
    "make_app",
    "serve",
]
