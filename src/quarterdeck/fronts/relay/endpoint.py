"""The ASGI app for frontends, at `/ws`: one WebSocket each, any number of them.

Owns which frontends are there. Above is the gate, which has checked who they are; one frontend is a
`connection`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.fronts.relay.asgi import Caller, Receive, Scope, Send
from quarterdeck.fronts.relay.connection import Connection, Pace
from quarterdeck.fronts.relay.feed import wanted_in
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.views import Piece
from quarterdeck.runtime.asgi import Answer, refuse_upgrade

PROTOCOL = "quarterdeck.relay"
"""The WebSocket subprotocol of frontends that send their token as another one."""
MOST_FRONTENDS = 64
MOST_OF_ONE = 16
"""Frontends of one person, so that nobody keeps the others out."""


class RelayEndpoint:
    """Serves frontends."""

    def __init__(
        self,
        hub: HubApi,
        caller_of: Callable[[Scope], Caller],
        *,
        pace: Pace | None = None,
        most: int = MOST_FRONTENDS,
        most_of_one: int = MOST_OF_ONE,
    ) -> None:
        """`caller_of` gives the person behind a connection, which was checked before."""
        self._hub = hub
        self._caller_of = caller_of
        self._pace = pace or Pace()
        self._most = most
        self._most_of_one = most_of_one
        self._connections: set[Connection] = set()
        self._people: Counter[str] = Counter()
        """The frontends of each person."""
        self._unsubscribe: Callable[[], None] = lambda: None

    @property
    def frontends(self) -> int:
        """The number of frontends that are connected."""
        return len(self._connections)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One frontend, until it disconnects or is disconnected."""
        caller = self._caller_of(scope)
        if not caller.may(Right.READ):
            answer = Answer(403, f"{caller.name} may not read")
            await refuse_upgrade(answer, receive, send)
            return
        if len(self._connections) >= self._most:
            answer = Answer(429, f"at most {self._most} frontends at once")
            await refuse_upgrade(answer, receive, send)
            return
        if self._people[caller.name] >= self._most_of_one:
            answer = Answer(429, f"at most {self._most_of_one} frontends of one person at once")
            await refuse_upgrade(answer, receive, send)
            return
        self._people[caller.name] += 1
        try:
            await self._begin(caller, scope, receive, send)
        finally:
            self._people[caller.name] -= 1
            if not self._people[caller.name]:
                del self._people[caller.name]

    async def _begin(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            wanted = wanted_in(scope.get("query_string", b""))
            connection = Connection(self._hub, caller, wanted, receive, send, self._pace)
            await connection.begin()
        except (NotFound, UsageError) as error:
            status = 404 if isinstance(error, NotFound) else 400
            await refuse_upgrade(Answer(status, str(error)), receive, send)
            return
        await receive()  # the connect
        # A browser that offers protocols gives up unless one of them is taken.
        offered = scope.get("subprotocols") or ()
        taken = {"subprotocol": PROTOCOL} if PROTOCOL in offered else {}
        await send({"type": "websocket.accept", **taken})
        await self._serve(connection)

    async def _serve(self, connection: Connection) -> None:
        # Nobody needs pieces while nobody is here: they are most of what CLIs say.
        if not self._connections:
            self._unsubscribe = self._hub.pieces(self._receive)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._unsubscribe()

    def _receive(self, piece: Piece) -> None:
        for connection in self._connections:
            connection.receive_piece(piece)
