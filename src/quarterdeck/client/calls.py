"""The calls of the hub's HTTP API as values: method, path, body, and the type of the answer.

A call does no I/O. `HubClient` sends it with an HTTP library; the command line sends it with the
standard library, which loads faster. Commands become calls by the table of commands. A problem
document becomes a `HubRefused`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.addresses import check_encrypted
from quarterdeck.domain.errors import (
    Conflict,
    Forbidden,
    LinkRefused,
    NotFound,
    QuarterdeckError,
    UsageError,
)
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.command_table import row_of
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.machine_requests import Changes, Folders, Settled, StoredFile
from quarterdeck.protocol.problems import Problem
from quarterdeck.protocol.schedules import (
    Firing,
    FiringList,
    RunSchedule,
    Schedule,
    ScheduleList,
    ScheduleShape,
)
from quarterdeck.protocol.shapes import (
    AskList,
    EventPage,
    Health,
    MachineList,
    Me,
    NewFile,
    ProjectList,
    PromptList,
    SessionChanges,
    SessionPage,
    WorktreeAction,
)
from quarterdeck.protocol.usage import UsageBy, UsageReport
from quarterdeck.protocol.views import SessionShape

Content = str | Raw | Sequence[Mapping[str, object] | Struct]
"""A text, content blocks of the Messages API, or their JSON."""


def content_of(prompt: Content) -> Raw:
    """A prompt as JSON."""
    return prompt if isinstance(prompt, Raw) else Raw(msgspec.json.encode(prompt))


PAGE = 500
"""The entries of a page that a client asks for."""

T = TypeVar("T")


class HubRefused(QuarterdeckError):
    """The hub refused a request. `problem` is its whole answer, `problem.code` is for programs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        text = problem.detail or problem.title
        # An internal error: the hub's log has more, under this instance.
        Exception.__init__(
            self, f"{problem.title}: {text} ({problem.instance})" if problem.instance else text
        )


class HubInvalid(HubRefused, UsageError):
    """The request is not valid, or the session's CLI does not support it."""


class HubForbidden(HubRefused, Forbidden):
    """The token is not valid, or its role does not have this right."""


class HubNotFound(HubRefused, NotFound):
    """The session, question, prompt or machine does not exist."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.what, self.id = "", ""


class HubConflict(HubRefused, Conflict):
    """The present state does not allow it. `code` is that of the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.code = problem.code


class HubOffline(LinkRefused):
    """No hub answers, and nothing has reached one."""


class AnswerLost(LinkRefused):
    """The hub went away before it answered: the command may have been executed, or not."""


def refusal(problem: Problem) -> HubRefused:
    """The error for a problem: of the kind that an `Agent` would raise for the same."""
    match problem.status:
        case 400 | 413 | 415 | 422:
            return HubInvalid(problem)
        case 401 | 403:
            return HubForbidden(problem)
        case 404:
            return HubNotFound(problem)
        case 409:
            return HubConflict(problem)
        case _:
            return HubRefused(problem)


class HubAddress(Value):
    """A hub's address and a token for it."""

    address: str
    token: str
    insecure: bool = False
    """Whether plain HTTP to another machine is used."""
    ca_file: Path | None = None
    """The only certificate authority to trust, a PEM file; None: those of the system."""

    def __post_init__(self) -> None:
        """Refuse an address that is not one of a hub, or that would show the token to others."""
        parts = urlsplit(self.address)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(
                f"{self.address!r} is no address of a hub, as http://127.0.0.1:8765 is"
            )
        check_encrypted(self.address, insecure=self.insecure)

    @property
    def base(self) -> str:
        """The address without a slash at its end."""
        return self.address.rstrip("/")


class Call(Struct, Generic[T], frozen=True):
    """A request, and the type of its answer."""

    method: str
    path: str
    """With its query."""
    answer: type[T]
    body: bytes | None = None

    def headers(self, token: str) -> dict[str, str]:
        """The headers to send."""
        given = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        return given if self.body is None else given | {"Content-Type": "application/json"}

    def decode(self, status: int, data: bytes, address: str) -> T:
        """The answer. Raises `HubRefused` for a problem, `LinkRefused` for what no hub sends."""
        if status >= 400:
            raise refusal(problem_in(status, data))
        try:
            return msgspec.json.decode(data, type=self.answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LinkRefused(f"{address} does not answer as a hub does: {error}") from error


def problem_in(status: int, data: bytes) -> Problem:
    """The problem in an answer that is an error."""
    try:
        return msgspec.json.decode(data, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A proxy in between, or no hub at all.
        title = f"the answer was HTTP {status}"
        return Problem(type="about:blank", title=title, status=status, code="unknown")


def get(
    path: str,
    answer: type[T],
    query: Mapping[str, str | int | bool | None] | None = None,
) -> Call[T]:
    """A call that reads. Members of the query that are None are left out."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (query or {}).items()
        if value is not None
    }
    return Call("GET", f"{path}?{urlencode(given)}" if given else path, answer)


def send(method: str, path: str, answer: type[T], body: Struct | None = None) -> Call[T]:
    """A call that changes something."""
    return Call(method, path, answer, None if body is None else msgspec.json.encode(body))


def at(session: str, *more: str) -> str:
    """The path of a session, or of something in it."""
    return "/".join(["/api/sessions", *(quote(part, safe="") for part in (session, *more))])


# --- commands ------------------------------------------------------------------------------------


def submit(command: AnyCommand) -> Call[Outcome]:
    """A command. `by` is set by the hub."""
    row = row_of(command)
    path, body = row.request(command)
    # The route that several commands share answers with the session, which has its id as well.
    return Call(row.method, path, Outcome, body)


def change(session: str, changes: SessionChanges) -> Call[SessionShape]:
    """Several changes of a session at once."""
    return send("PATCH", at(session), SessionShape, changes)


def settle(session: str, action: WorktreeAction) -> Call[Settled]:
    """Merge, keep or discard a session's worktree."""
    return send("POST", at(session, "worktree"), Settled, action)


def put_file(session: str, path: str, data: bytes) -> Call[StoredFile]:
    """Store a file in a session's folder."""
    return send("POST", at(session, "files"), StoredFile, NewFile(path=path, data=data))


# --- queries -------------------------------------------------------------------------------------


def sessions(after: str | None = None, *, archived: bool = False) -> Call[SessionPage]:
    """A page of sessions, newest first."""
    return get("/api/sessions", SessionPage, {"after": after, "limit": PAGE, "archived": archived})


def session(session: str) -> Call[SessionShape]:
    """One session."""
    return get(at(session), SessionShape)


def prompts(session: str) -> Call[PromptList]:
    """The queued prompts of a session."""
    return get(at(session, "prompts"), PromptList)


def events(session: str, after: int = 0, limit: int = PAGE) -> Call[EventPage]:
    """A page of a session's history."""
    return get(at(session, "events"), EventPage, {"after": after, "limit": limit})


def diff(session: str) -> Call[Changes]:
    """What a session has changed in its folder."""
    return get(at(session, "diff"), Changes)


def asks(session: str | None = None, *, ended: bool = False) -> Call[AskList]:
    """The open questions, oldest first; also (`ended`) those whose agent has ended."""
    return get("/api/asks", AskList, {"session": session, "ended": "true" if ended else None})


def audit(
    session: str | None = None,
    after: int = 0,
    before: int | None = None,
    kind: str | None = None,
) -> Call[EventPage]:
    """A page of the audit log, oldest first; with `before` (0: the end) the newest first.

    Entries of one `kind` (see `AuditKind`) are always the newest first.
    """
    query = {"session": session, "after": after, "before": before, "limit": PAGE, "kind": kind}
    return get("/api/audit", EventPage, query)


def machines() -> Call[MachineList]:
    """The machines that run agents, or did."""
    return get("/api/machines", MachineList)


def folders(machine: str, path: str | None = None) -> Call[Folders]:
    """The folders of a machine that a session may work in."""
    where = f"/api/machines/{quote(machine, safe='')}/directories"
    return get(where, Folders, {"path": path})


def projects() -> Call[ProjectList]:
    """The projects of the configuration."""
    return get("/api/projects", ProjectList)


def usage(by: UsageBy, since: str | None = None, until: str | None = None) -> Call[UsageReport]:
    """What was used. `since` and `until` are days or times in ISO 8601."""
    return get("/api/usage", UsageReport, {"by": by.value, "since": since, "until": until})


def whoami() -> Call[Me]:
    """The person that the token belongs to."""
    return get("/api/whoami", Me)


def health() -> Call[Health]:
    """Whether the hub answers, and its version. It needs no token."""
    return get("/healthz", Health)


def schedules() -> Call[ScheduleList]:
    """The schedules and inbound webhooks, by name."""
    return get("/api/schedules", ScheduleList)


def add_schedule(schedule: Schedule) -> Call[ScheduleShape]:
    """Add a schedule. The same one again changes nothing."""
    return send("POST", "/api/schedules", ScheduleShape, schedule)


def remove_schedule(name: str) -> Call[ScheduleList]:
    """Remove a schedule; gives those that are left."""
    return send("DELETE", _at(name), ScheduleList)


def pause_schedule(name: str, *, paused: bool = True) -> Call[ScheduleShape]:
    """Pause a schedule, or resume it."""
    return send("POST", _at(name, "pause" if paused else "resume"), ScheduleShape)


def run_schedule(name: str, id_: str | None = None) -> Call[Firing]:
    """Start a session now, once for an id."""
    return send("POST", _at(name, "run"), Firing, RunSchedule(id=id_))


def firings(name: str, *, before: str | None = None, limit: int = 50) -> Call[FiringList]:
    """The starts of a schedule, newest first."""
    return get(_at(name, "firings"), FiringList, {"before": before, "limit": limit})


def _at(name: str, *more: str) -> str:
    return "/".join(["/api/schedules", *(quote(part, safe="") for part in (name, *more))])
