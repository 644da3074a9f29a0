"""A typed client of the hub's API, blocking, with nothing but the standard library.

Owns the way from a call to a request and from an answer to the same types that the hub uses; a
problem document becomes a `HubRefused`. The stream is `stream`'s, what is asked about the policy is
`policy_client`'s, the past is `past`'s. It knows no terminal: any program can use it.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from quarterdeck.domain.errors import LinkRefused, QuarterdeckError, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.journal.usage import UsageReport
from quarterdeck.protocol.command_table import row_of
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.machine_requests import Changes, Settled
from quarterdeck.protocol.problems import Problem
from quarterdeck.protocol.shapes import (
    AskList,
    EventPage,
    Health,
    MachineList,
    Me,
    ProjectList,
    ProjectShape,
    SessionChanges,
    SessionPage,
    WorktreeAction,
)
from quarterdeck.protocol.views import AskView, EventShape, MachineView, SessionShape

SECONDS = 60.0
"""For one answer. The slowest, a stop, waits for a CLI to go by itself."""
PAGE = 500

_T = TypeVar("_T")


class HubRefused(QuarterdeckError):
    """The hub said no; `problem` is its whole answer, `problem.code` the word to go by."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        text = problem.detail or problem.title
        # An error of the hub's own: its log has more, under this name.
        super().__init__(
            f"{problem.title}: {text} ({problem.instance})" if problem.instance else text
        )


class HubClient:
    """The hub at one address, by one token. Each call is a request; none is tried twice."""

    def __init__(self, address: str, token: str, *, seconds: float = SECONDS) -> None:
        self.address = address.rstrip("/")
        self.token = token
        self._seconds = seconds
        parts = urlsplit(self.address)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(f"{address!r} is no address of a hub, as http://127.0.0.1:8765 is")
        self._secure = parts.scheme == "https"
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path

    # --- sessions ------------------------------------------------------------------------------

    def submit(self, command: AnyCommand) -> Outcome:
        """Have a command done."""
        row = row_of(command)
        path, body = row.request(command)
        return self._exchange_as(row.method, path, Outcome, body)

    def sessions(self, *, archived: bool = False) -> Iterator[SessionShape]:
        """All sessions, newest first; or all that were put away."""
        after: str | None = None
        while True:
            query = {"limit": str(PAGE), "archived": "true" if archived else "false"}
            page = self._get(
                "/api/sessions", SessionPage, query | ({"after": after} if after else {})
            )
            yield from page.sessions
            after = page.next
            if after is None:
                return

    def session(self, session: str) -> SessionShape:
        """One session."""
        return self._get(f"/api/sessions/{quote(session, safe='')}", SessionShape)

    def change(self, session: str, changes: SessionChanges) -> SessionShape:
        """Rename it, put it away, and the like."""
        return self._send("PATCH", _at(session), SessionShape, changes)

    def events(self, session: str, *, after: int = 0) -> Iterator[EventShape]:
        """Its history, from the event after this number on; a page is read when it is wanted."""
        following: int | None = after
        while following is not None:
            query = {"after": str(following), "limit": str(PAGE)}
            page = self._get(_at(session, "events"), EventPage, query)
            yield from page.events
            following = page.next

    def diff(self, session: str) -> Changes:
        """What it has changed."""
        return self._get(_at(session, "diff"), Changes)

    def settle(self, session: str, wanted: WorktreeAction) -> Settled:
        """Merge, keep or discard its worktree."""
        return self._send("POST", _at(session, "worktree"), Settled, wanted)

    # --- the whole deck ------------------------------------------------------------------------

    def asks(self, session: str | None = None) -> tuple[AskView, ...]:
        """The open questions, oldest first."""
        return self._get("/api/asks", AskList, {"session": session} if session else {}).asks

    def projects(self) -> tuple[ProjectShape, ...]:
        """The projects of its configuration."""
        return self._get("/api/projects", ProjectList).projects

    def machines(self) -> tuple[MachineView, ...]:
        """The machines that run agents, or did."""
        return self._get("/api/machines", MachineList).machines

    def usage(self, by: str, *, since: str | None = None, until: str | None = None) -> UsageReport:
        """What was used, by day, project, model, machine or session, from one day to another."""
        given = {"by": by, "since": since, "until": until}
        query = {name: value for name, value in given.items() if value is not None}
        return self._get("/api/usage", UsageReport, query)

    def audit(self, session: str | None = None) -> Iterator[EventShape]:
        """Who or what let each call pass, or did not, oldest first."""
        after: int | None = 0
        while after is not None:
            query = {"after": str(after), "limit": str(PAGE)}
            page = self._get(
                "/api/audit", EventPage, query | ({"session": session} if session else {})
            )
            yield from page.events
            after = page.next

    # --- about the hub -------------------------------------------------------------------------

    def whoami(self) -> Me:
        """Whom the hub takes us for."""
        return self._get("/api/whoami", Me)

    def health(self) -> Health:
        """Whether it answers, and its version. Needs no token."""
        return self._get("/healthz", Health)

    # --- one request ---------------------------------------------------------------------------

    def _get(self, path: str, kind: type[_T], query: dict[str, str] | None = None) -> _T:
        return self._send("GET", f"{path}?{urlencode(query)}" if query else path, kind)

    def _send(self, method: str, path: str, kind: type[_T], body: Value | None = None) -> _T:
        return self._exchange_as(
            method, path, kind, None if body is None else msgspec.json.encode(body)
        )

    def _exchange_as(self, method: str, path: str, kind: type[_T], data: bytes | None) -> _T:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        status, answer = self._exchange(method, self._path + path, data, headers)
        if status >= 400:
            raise HubRefused(problem_in(status, answer))
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LinkRefused(f"{self.address} does not answer as a hub does: {error}") from error

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except TimeoutError as error:
            raise LinkRefused(f"the hub at {self.address} does not answer") from error
        except (OSError, http.client.HTTPException) as error:
            raise LinkRefused(f"no hub answers at {self.address}: {error}") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._seconds, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)


def _at(session: str, what: str = "") -> str:
    path = f"/api/sessions/{quote(session, safe='')}"
    return f"{path}/{what}" if what else path


def problem_in(status: int, answer: bytes) -> Problem:
    """What an answer that is an error says."""
    try:
        return msgspec.json.decode(answer, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Not ours: a proxy in between, or no hub at all.
        title = f"the answer was HTTP {status}"
        return Problem(type="about:blank", title=title, status=status, code="unknown")
