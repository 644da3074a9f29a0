"""Requests in numbers, and the page on which numbers are read.

`Requests` counts what the gate answers, by method, route and status. A route is the pattern, never
the requested path: paths name sessions, and any client can invent more. `MetricsPage` is the ASGI
app at `/metrics`; its contents are made elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from quarterdeck.fronts.http.asgi import (
    Message,
    Receive,
    Scope,
    Send,
    header_of,
    path_of,
    respond,
)
from quarterdeck.fronts.http.problems import MEDIA_TYPE, encode, problem_of
from quarterdeck.protocol.problems import problem

MetricsSource = Callable[[str], Awaitable[tuple[bytes, str]]]
"""From the reader's `Accept` to the page and its content type."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SWITCHED = 101


class Requests:
    """How many requests were answered, and how; and how many clients the stream has."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.count_streams: Callable[[], int] = int
        """Set by the owner of the stream."""

    def streams(self) -> int:
        """How many clients the stream has now."""
        return self.count_streams()

    def count_answer(self, scope: Scope, send: Send) -> Send:
        """A `send` that counts the answer when it begins."""

        async def send_counted(message: Message) -> None:
            match message["type"]:
                case "http.response.start" | "websocket.http.response.start":
                    self._count(scope, message["status"])
                case "websocket.accept":
                    self._count(scope, _SWITCHED)
            await send(message)

        return send_counted

    def _count(self, scope: Scope, status: int) -> None:
        method = scope.get("method", "GET")
        self.counts[method if method in _METHODS else "other", route_of(scope), status] += 1


class MetricsPage:
    """The ASGI app at `/metrics`."""

    def __init__(self, source: MetricsSource) -> None:
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        if scope["method"] not in {"GET", "HEAD"}:
            refusal = problem("method_not_allowed")
            await respond(send, refusal.status, encode(refusal), MEDIA_TYPE)
            return
        try:
            body, content_type = await self._source(header_of(scope, b"accept") or "")
        except Exception as error:  # noqa: BLE001  (the boundary: an error becomes an answer)
            failed = problem_of(error)
            await respond(send, failed.status, encode(failed), MEDIA_TYPE)
            return
        await respond(send, 200, b"" if scope["method"] == "HEAD" else body, content_type)


def route_of(scope: Scope) -> str:
    """The pattern of what was asked for; one of a fixed number of words."""
    path = path_of(scope)
    if path in {"/metrics", "/api/stream"}:
        return path
    for endpoint in ("/runner", "/program", "/v1"):
        if path == endpoint or path.startswith(f"{endpoint}/"):
            return endpoint
    if scope["type"] == "websocket" and path == "/":
        return "/v1"  # a CLI that dials
    template = scope.get("path_template")
    if isinstance(template, str) and template:
        return template
    return "unknown" if path.startswith("/api/") else "page"
