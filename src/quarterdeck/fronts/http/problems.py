"""Problem documents (RFC 9457): the one place where an error becomes an answer.

Above is every way in: the gate, the routes, the stream. Each problem has a `code`, a word that
programs can rely on; the text beside it is for people and may change. No problem carries a stack
trace: an unexpected error is logged, under the `instance` in the answer.
"""

from __future__ import annotations

import logging

import msgspec

from quarterdeck.domain.errors import (
    Conflict,
    Forbidden,
    JournalError,
    LaunchError,
    LinkError,
    NotFound,
    QuarterdeckError,
    RequestCancelled,
    RequestError,
    RequestTimeout,
    UnsupportedError,
    UsageError,
    WorkLimit,
)
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.http.asgi import Headers
from quarterdeck.protocol.problems import Problem, problem

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger(__name__)


class Refused(QuarterdeckError):
    """A request that the front itself turns away, with one of `CODES`."""

    def __init__(self, code: str, detail: str = "", *, headers: Headers = ()) -> None:
        self.problem = problem(code, detail)
        self.headers = headers
        super().__init__(detail or self.problem.title)


def problem_of(error: Exception) -> Problem:
    """The problem of an error. An unexpected error is logged and becomes `internal`."""
    match error:
        case Refused():
            return error.problem
        case Conflict():
            made = problem("conflict", str(error))
            kind = f"urn:quarterdeck:problem:{error.code}"
            return msgspec.structs.replace(made, code=error.code, type=kind)
        case QuarterdeckError() if code := _code_of(error):
            return problem(code, str(error))
        case _:
            instance = f"urn:quarterdeck:error:{new_id()}"
            logger.error("%s", instance, exc_info=error)
            return problem("internal", "it was logged under this instance", instance=instance)


def encode(found: Problem) -> bytes:
    """A problem as the body of an answer."""
    return msgspec.json.encode(found)


def _code_of(error: QuarterdeckError) -> str | None:
    match error:
        case UnsupportedError():
            return "unsupported"
        case UsageError():
            return "bad_request"
        case NotFound():
            return "not_found"
        case Forbidden():
            return "forbidden"
        case LaunchError():
            return "launch_failed"
        case RequestTimeout():
            return "cli_timeout"
        case RequestCancelled():
            return "cancelled"
        case RequestError():
            return "cli_refused"
        case LinkError():
            return "disconnected"
        case WorkLimit(code=code):
            return code
        case JournalError():
            return "journal_unavailable"
        case _:
            return None
