"""What hubs say to each other, and errors on their way from one to another. Pure.

The error that the owner of a session raised is raised again where the command came from, so that
every front there handles it as its own.
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.domain.errors import (
    Conflict,
    Forbidden,
    JournalError,
    LaunchError,
    LinkClosed,
    LinkRefused,
    NotFound,
    QuarterdeckError,
    RequestCancelled,
    RequestError,
    RequestRefused,
    RequestTimeout,
    StaleFence,
    StaleHead,
    UnsupportedError,
    UsageError,
    WorkLimit,
)
from quarterdeck.domain.structs import Value
from quarterdeck.hub.api import Asker


class SealedCommand(Value):
    """A command for a session of the other hub."""

    command: Raw
    asker: Asker = Asker()


class SealedRequest(Value):
    """Something that a machine of the other hub is to do."""

    machine: str
    request: Raw
    asker: Asker = Asker()


class AgentCall(Value):
    """A request of the agent of a run that the other hub has. Its token stays where it came."""

    session: str
    run: str
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class AgentAnswer(Value):
    """What the agent is answered."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class MachineAnswer(Value):
    """What the machine answered."""

    refused: bool
    answer: bytes


class CarriedError(Value):
    """An error of the other hub."""

    kind: str
    text: str
    code: str = ""
    what: str = ""
    id: str = ""
    seconds: float = 0.0


class Again(QuarterdeckError):
    """The other hub does not own it any more: nothing was done, and it is to be routed again."""


def to_carried(error: QuarterdeckError) -> CarriedError:
    """An error as another hub gets it."""
    text = str(error)
    match error:
        case StaleFence() | StaleHead():
            return CarriedError(kind="again", text=text)
        case Conflict(code="moving" | "owner_away"):
            return CarriedError(kind="again", text=text)
        case Conflict(code=code):
            return CarriedError(kind="conflict", text=text, code=code)
        case NotFound(what=what, id=id_):
            return CarriedError(kind="not_found", text=text, what=what, id=id_)
        case RequestRefused(subtype=what, error=said, code=code):
            return CarriedError(kind="cli_refused", text=said, what=what, code=code or "")
        case RequestTimeout(subtype=what, seconds=seconds):
            return CarriedError(kind="cli_timeout", text=text, what=what, seconds=seconds)
        case RequestError(subtype=what):
            return CarriedError(
                kind="cli_cancelled", text=text.removeprefix(f"{what}: "), what=what
            )
        case WorkLimit(code=code):
            return CarriedError(kind="work_limit", text=text, code=code)
        case JournalError(code=code):
            return CarriedError(kind="journal", text=text, code=code)
        case _:
            kind = next((name for name, known in _PLAIN.items() if isinstance(error, known)), "")
            return CarriedError(kind=kind, text=text)


_PLAIN: dict[str, type[QuarterdeckError]] = {
    "unsupported": UnsupportedError,
    "usage": UsageError,
    "forbidden": Forbidden,
    "launch": LaunchError,
    "link_closed": LinkClosed,
    "link": LinkRefused,
}


def to_error(found: CarriedError) -> QuarterdeckError:
    """The error of another hub, to be raised here."""
    match found.kind:
        case "again":
            return Again(found.text)
        case "not_found":
            return NotFound(found.what, found.id)
        case "cli_refused":
            return RequestRefused(found.what, found.text, code=found.code or None)
        case "cli_timeout":
            return RequestTimeout(found.what, found.seconds)
        case "cli_cancelled":
            return RequestCancelled(found.what, found.text)
        case "work_limit":
            return WorkLimit(found.code, found.text)
        case "journal":
            return JournalError(found.text, code=found.code)
        case "conflict":
            return Conflict(found.code, found.text)
        case "usage" | "unsupported":
            return UsageError(found.text)
        case "forbidden" | "launch" | "link_closed" | "link" as kind:
            return _PLAIN[kind](found.text)
        case _:
            return Conflict("other_hub_failed", f"the hub of the session failed: {found.text}")
