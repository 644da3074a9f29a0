"""Problem documents (RFC 9457): every code, with its status and title.

A `code` is for programs; `title` and `detail` are for people and may change. Which error becomes
which code is known by the server, not here.
"""

from __future__ import annotations

from http import HTTPStatus

from quarterdeck.domain.structs import Value

CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not valid"),
    "unauthorized": (401, "A token is required"),
    "page_key_missing": (401, "This page has no login"),
    "bad_code": (401, "The login code is wrong, used, or expired"),
    "forbidden": (403, "The role does not have this right"),
    "host_not_allowed": (403, "The host is not configured"),
    "origin_not_allowed": (403, "The origin is not allowed"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "The method is not allowed"),
    "conflict": (409, "Not possible in the present state"),
    "disconnected": (409, "The session's CLI is not connected"),
    "cancelled": (409, "The request was cancelled"),
    "body_too_slow": (408, "The body did not arrive in time"),
    "too_large": (413, "The body is too large"),
    "unsupported_media_type": (415, "The body must be JSON"),
    "unsupported": (422, "The session's CLI does not support this"),
    "launch_failed": (422, "The CLI could not be started"),
    "cli_refused": (422, "The CLI refused the request"),
    "too_many_failures": (429, "Too many failed logins"),
    "too_many_requests": (429, "Too many requests and streams at once"),
    "too_many_commands": (429, "Too many commands in progress"),
    "internal": (500, "Internal error"),
    "stopping": (503, "The server is stopping"),
    "journal_unavailable": (503, "The journal cannot be read or written"),
    "took_too_long": (503, "The call exceeds its limit of time or memory"),
    "busy": (503, "Too many calls in progress"),
    "cli_timeout": (504, "The CLI did not answer in time"),
}
"""Each code with its status and title. A conflict may have its own code, with status 409."""


class Problem(Value):
    """A problem document of RFC 9457, with a code for programs."""

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    instance: str | None = None


def problem(code: str, detail: str = "", *, instance: str | None = None) -> Problem:
    """A problem by its code."""
    status, title = CODES[code]
    return Problem(
        type=f"urn:quarterdeck:problem:{code}",
        title=title,
        status=status,
        code=code,
        detail=detail,
        instance=instance,
    )


def of_status(status: int, detail: str) -> Problem:
    """A problem for a bare HTTP status, as the framework raises it."""
    for code, (known, _) in CODES.items():
        if known == status:
            return problem(code, detail)
    if 400 <= status < 500:
        return problem("bad_request", detail or HTTPStatus(status).phrase)
    return problem("internal", "")
