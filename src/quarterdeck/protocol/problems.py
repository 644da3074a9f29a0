"""Problem documents (RFC 9457): every code, with its status and title.

A `code` is for programs; `title` and `detail` are for people and may change. Which error becomes
which code is known by the server, not here.
"""

from __future__ import annotations

from http import HTTPStatus

from quarterdeck.domain.structs import Value

CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be right"),
    "unauthorized": (401, "A token is wanted"),
    "page_key_missing": (401, "This page has not logged in"),
    "bad_code": (401, "The login code is wrong, used, or too old"),
    "forbidden": (403, "Whoever asks may not do this"),
    "host_not_allowed": (403, "This server is not known by that name"),
    "origin_not_allowed": (403, "The page that asks is not this server's"),
    "not_found": (404, "There is no such thing"),
    "method_not_allowed": (405, "That cannot be done with this"),
    "conflict": (409, "It cannot be done in the present state"),
    "disconnected": (409, "The session's CLI cannot be reached"),
    "cancelled": (409, "The request was withdrawn"),
    "too_large": (413, "The body is too large"),
    "unsupported_media_type": (415, "The body must be JSON"),
    "unsupported": (422, "The session's CLI does not know this"),
    "launch_failed": (422, "The CLI could not be started"),
    "cli_refused": (422, "The CLI refused"),
    "too_many_failures": (429, "Too many failed logins"),
    "too_many_commands": (429, "Too many commands are under way"),
    "internal": (500, "An error in the server"),
    "stopping": (503, "The server stops"),
    "journal_unavailable": (503, "The journal cannot be read or written"),
    "took_too_long": (503, "It takes more time or memory than one call may have"),
    "busy": (503, "Other calls were first"),
    "cli_timeout": (504, "The CLI did not answer in time"),
}
"""Every code with its status and title. A conflict may have a code of its own, with status 409."""


class Problem(Value):
    """What went wrong, as RFC 9457 has it, with a code for programs."""

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
