"""The hub for code without an event loop: commands of the command line, and scripts.

Owns one request at a time. It needs only the standard library, which loads in a third of the time
that an event loop and an HTTP library take. Calls, errors, and when a request is sent again are
those of the asynchronous client: `calls` and `attempts` have them.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar, cast
from urllib.parse import urlsplit

from msgspec.structs import replace

from quarterdeck.client import calls
from quarterdeck.client.attempts import Attempts, is_repeatable
from quarterdeck.client.calls import (
    AnswerLost,
    Call,
    HubAddress,
    HubOffline,
    problem_in,
    refusal,
)
from quarterdeck.domain.errors import LinkRefused, QuarterdeckError
from quarterdeck.protocol.command_table import REPEATED_HEADER
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.shapes import EventPage, SessionChanges
from quarterdeck.protocol.views import AskView, EventShape, MachineView, SessionShape
from quarterdeck.runtime.client_tls import client_context

SECONDS = 60.0
"""For one answer. The slowest, a stop, waits for a CLI to end by itself."""
LOST_SECONDS = 5.0
"""For so long a hub that went away in the midst of a request is waited for: a restart takes less.
One that is not there at all is told at once: a person waits."""
CHUNK = 64 * 1024

_T = TypeVar("_T")


class BlockingClient:
    """The hub at one address, by one token.

        hub = BlockingClient(HubAddress(address="http://127.0.0.1:8765", token=token))
        for session in hub.sessions():
            print(session.name, session.state)

    Methods raise `HubRefused` where the hub refuses, `HubOffline` where none answers, and
    `AnswerLost` where a command that must not be sent twice may have been executed. `find` looks
    for the hub again before a request is sent again.
    """

    def __init__(
        self,
        where: HubAddress,
        *,
        seconds: float = SECONDS,
        lost_seconds: float = LOST_SECONDS,
        find: Callable[[], HubAddress] | None = None,
    ) -> None:
        self.where = where
        self._seconds = seconds
        self._lost_seconds = lost_seconds
        self._find = find

    def call(self, call: Call[_T]) -> _T:
        """Send any call, and give its answer. One that only reads is sent again if it is lost."""
        return self._until_answered(call, safe=call.method == "GET")

    def submit(self, command: AnyCommand) -> Outcome:
        """Send any command; again, if its answer is lost and it can be executed only once."""
        return self._until_answered(calls.submit(command), safe=is_repeatable(command))

    def download(self, call: Call[bytes]) -> Iterator[bytes]:
        """The contents that a call gives, piece by piece. Raises `AnswerLost` if it breaks off."""
        connection = self._connection()
        try:
            with self._errors(connection):
                response = self._send_request(connection, call)
                if response.status >= 400:
                    raise refusal(problem_in(response.status, response.read()))
                while piece := response.read(CHUNK):
                    yield piece
                if response.length:  # reading in pieces does not tell
                    raise AnswerLost(f"the hub at {self.where.base} broke off")
        finally:
            connection.close()

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
        return self._iterate_pages(lambda number: calls.events(session, number), after)

    def audit(self, session: str | None = None) -> Iterator[EventShape]:
        """The audit log, newest entry first."""
        return self._iterate_pages(lambda number: calls.audit(session, before=number), 0)

    def asks(self, session: str | None = None, *, ended: bool = False) -> tuple[AskView, ...]:
        """The open questions, oldest first; also (`ended`) those whose agent has ended."""
        return self.call(calls.asks(session, ended=ended)).asks

    def machines(self) -> tuple[MachineView, ...]:
        """The machines that run agents, or did."""
        return self.call(calls.machines()).machines

    # --- sending -------------------------------------------------------------------------------

    def _until_answered(self, call: Call[_T], *, safe: bool) -> _T:
        attempts = Attempts(time.monotonic(), self._lost_seconds, safe=safe, patient=False)
        while True:
            try:
                return self._once(call)
            except QuarterdeckError as error:
                time.sleep(attempts.again(error, time.monotonic()))
            if self._find is not None:
                with suppress(LinkRefused):  # the next attempt tells
                    self.where = self._find()

    def _once(self, call: Call[_T]) -> _T:
        connection = self._connection()
        try:
            with self._errors(connection):
                response = self._send_request(connection, call)
                status, data = response.status, response.read()
        finally:
            connection.close()
        found = call.decode(status, data, self.where.base)
        if isinstance(found, Outcome) and response.headers.get(REPEATED_HEADER) is not None:
            return cast("_T", replace(found, repeated=True))
        return found

    def _send_request(
        self, connection: http.client.HTTPConnection, call: Call[_T]
    ) -> http.client.HTTPResponse:
        headers = call.headers(self.where.token)
        path = urlsplit(self.where.base).path + call.path
        connection.request(call.method, path, call.body, headers)
        return connection.getresponse()

    def _errors(self, connection: http.client.HTTPConnection) -> _ConnectionErrors:
        return _ConnectionErrors(connection, self.where.base)

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.where.base)
        host = parts.hostname or ""
        if parts.scheme == "https":
            context = client_context(self.where.ca_file)
            return http.client.HTTPSConnection(
                host, parts.port, timeout=self._seconds, context=context
            )
        return http.client.HTTPConnection(host, parts.port, timeout=self._seconds)

    def _iterate_pages(
        self, page_after: Callable[[int], Call[EventPage]], after: int
    ) -> Iterator[EventShape]:
        following: int | None = after
        while following is not None:
            page = self.call(page_after(following))
            yield from page.events
            following = page.next


class _ConnectionErrors:
    """Connects, and tells a hub that is away from one whose answer was lost."""

    def __init__(self, connection: http.client.HTTPConnection, base: str) -> None:
        self._connection = connection
        self._base = base

    def __enter__(self) -> None:
        try:
            self._connection.connect()
        except TimeoutError as error:
            raise HubOffline(f"the hub at {self._base} does not answer") from error
        except (OSError, http.client.HTTPException) as error:
            raise HubOffline(f"no hub answers at {self._base}: {error}") from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise AnswerLost(f"the hub at {self._base} does not answer") from error
        if isinstance(error, OSError | http.client.HTTPException):
            raise AnswerLost(f"the hub at {self._base} went away: {error}") from error
