"""The stream: one WebSocket that follows any set of sessions and takes commands.

Owns the endpoint and what its connections share: prebuilt frames and views, and which sessions are
writing. The frames are in `frames`, one client is a `connection`. Above is the gate.
"""

from __future__ import annotations

from quarterdeck.fronts.http.access import STREAM_PROTOCOL, Access
from quarterdeck.fronts.http.asgi import Receive, Scope, Send, refuse_upgrade
from quarterdeck.fronts.http.connection import Connection, Pace
from quarterdeck.fronts.http.events import Frames
from quarterdeck.fronts.http.problems import MEDIA_TYPE, encode
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.http.views import ViewCache
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.problems import problem
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.views import Deltas

_SPEAKING_KEPT = 1000  # then those that have fallen silent are looked for, and forgotten


class StreamEndpoint:
    """The ASGI app at `/api/stream`."""

    def __init__(self, hub: HubApi, access: Access, pace: Pace | None = None) -> None:
        self._hub = hub
        self._access = access
        self._pace = pace or Pace()
        self._frames = Frames(hub.epoch)
        self._views = ViewCache(hub)
        self._connections: set[Connection] = set()
        self._speaking: set[str] = set()
        # For as long as the app lives: a client that joins later needs to know who is speaking.
        hub.live(self._receive)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One client, until it disconnects or is disconnected."""
        person = scope["user"]
        assert isinstance(person, Person)
        if not person.may(Right.READ):
            refusal = problem("forbidden", f"{person.name} may not read")
            await refuse_upgrade(receive, send, refusal.status, encode(refusal), MEDIA_TYPE)
            return
        await receive()  # the connect
        # A browser that offers protocols gives up unless one of them is taken.
        offered = scope.get("subprotocols") or ()
        taken = {"subprotocol": STREAM_PROTOCOL} if STREAM_PROTOCOL in offered else {}
        await send({"type": "websocket.accept", **taken})
        connection = Connection(self, person, receive, send)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    @property
    def hub(self) -> HubApi:
        """The hub."""
        return self._hub

    @property
    def access(self) -> Access:
        """Authentication."""
        return self._access

    @property
    def pace(self) -> Pace:
        """The limits of every connection."""
        return self._pace

    @property
    def frames(self) -> Frames:
        """Frames that several connections send."""
        return self._frames

    @property
    def views(self) -> ViewCache:
        """Views that several connections send."""
        return self._views

    def clients(self) -> int:
        """The number of connections."""
        return len(self._connections)

    def notify_person(self, person: Person, version: int) -> None:
        """Tell the devices of a person that their preferences have changed."""
        for connection in self._connections:
            connection.notify_personal(person, version)

    def live_sessions(self) -> set[str]:
        """The sessions with text that may still be generated."""
        return set(self._speaking)

    def _receive(self, delta: Deltas) -> None:
        if len(self._speaking) > _SPEAKING_KEPT:
            self._speaking = {session for session in self._speaking if self._hub.so_far(session)}
        self._speaking.add(delta.session)
        for connection in self._connections:
            connection.receive(delta)
