"""The hub's API for the command line: the calls of `quarterdeck.client`, blocking.

`quarterdeck.client` is the client for programs. It needs an event loop and an HTTP library, which
take longer to load than a command takes to run; here the standard library sends the same calls.
Owns one request at a time. What a call is, and what its answer means, is known by `calls`.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import urlsplit

from quarterdeck.client import calls
from quarterdeck.client.calls import Call, HubAddress
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.shapes import EventPage, SessionChanges
from quarterdeck.protocol.views import AskView, EventShape, MachineView, SessionShape
from quarterdeck.runtime.client_tls import client_context

SECONDS = 60.0
"""For one answer. The slowest, a stop, waits for a CLI to end by itself."""

_T = TypeVar("_T")


class BlockingClient:
    """The hub at one address, by one token. Each call is a request; none is sent twice."""

    def __init__(self, where: HubAddress, *, seconds: float = SECONDS) -> None:
        self.where = where
        self._seconds = seconds
        parts = urlsplit(where.base)
        self._secure = parts.scheme == "https"
        self._host, self._port, self._path = parts.hostname or "", parts.port, parts.path

    def call(self, call: Call[_T]) -> _T:
        """Send any call, and give its answer."""
        connection = self._connection()
        headers = call.headers(self.where.token)
        try:
            connection.request(call.method, self._path + call.path, call.body, headers)
            response = connection.getresponse()
            status, data = response.status, response.read()
        except TimeoutError as error:
            raise LinkRefused(f"the hub at {self.where.base} does not answer") from error
        except (OSError, http.client.HTTPException) as error:
            raise LinkRefused(f"no hub answers at {self.where.base}: {error}") from error
        finally:
            connection.close()
        return call.decode(status, data, self.where.base)

    def submit(self, command: AnyCommand) -> Outcome:
        """Send any command."""
        return self.call(calls.submit(command))

    def session(self, session: str) -> SessionShape:
        """One session."""
        return self.call(calls.session(session))

    def sessions(self, *, archived: bool = False) -> Iterator[SessionShape]:
        """All sessions, newest first; or all archived ones."""
        after: str | None = None
        while True:
            page = self.call(calls.sessions(after, archived=archived))
            yield from page.sessions
            after = page.next
            if after is None:
                return

    def change(self, session: str, changes: SessionChanges) -> SessionShape:
        """Change several things of a session."""
        return self.call(calls.change(session, changes))

    def events(self, session: str, *, after: int = 0) -> Iterator[EventShape]:
        """A session's history after a number; a page is read when it is needed."""
        return self._paged(lambda number: calls.events(session, number), after)

    def audit(self, session: str | None = None) -> Iterator[EventShape]:
        """The audit log, oldest entry first."""
        return self._paged(lambda number: calls.audit(session, number), 0)

    def asks(self, session: str | None = None, *, ended: bool = False) -> tuple[AskView, ...]:
        """The open questions, oldest first; also (`ended`) those whose agent has ended."""
        return self.call(calls.asks(session, ended=ended)).asks

    def machines(self) -> tuple[MachineView, ...]:
        """The machines that run agents, or did."""
        return self.call(calls.machines()).machines

    def _paged(
        self, page_after: Callable[[int], Call[EventPage]], after: int
    ) -> Iterator[EventShape]:
        following: int | None = after
        while following is not None:
            page = self.call(page_after(following))
            yield from page.events
            following = page.next

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            context = client_context(self.where.ca_file)
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._seconds, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
