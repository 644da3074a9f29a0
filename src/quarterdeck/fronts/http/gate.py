"""The gate: what every request and every WebSocket passes before anything else sees it.

In this order: by which name, from which page, who. It stands outside the framework, so that no
route can be forgotten. Above is the server; below are the routes, the stream, and the endpoints of
runners and CLIs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.asgi import (
    ASGIApp,
    Headers,
    Message,
    Receive,
    Scope,
    Send,
    allow_large_messages,
    headers_of,
    path_of,
    refuse_upgrade,
    respond,
)
from quarterdeck.fronts.http.compression import Packer, compress_send
from quarterdeck.fronts.http.open_connections import serve_request, serve_socket
from quarterdeck.fronts.http.origins import Visit
from quarterdeck.fronts.http.page_policy import POLICY
from quarterdeck.fronts.http.problems import MEDIA_TYPE, Refused, encode, problem_of
from quarterdeck.fronts.http.relay_access import RelayAccess
from quarterdeck.fronts.http.request_limits import RequestLimits, UnderWay
from quarterdeck.fronts.http.request_metrics import Requests
from quarterdeck.fronts.http.roles import Person
from quarterdeck.protocol.problems import Problem, problem
from quarterdeck.protocol.roles import Right, Role

_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(self), payment=()"),
)
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
_NO_STORE = (b"cache-control", b"no-store")
SHARED_PATHS = "/shared/"
"""What a read-only link to one session can read. Nothing below `/api` takes its secret."""
PROGRAM_PATH = "/program"
_OF_CLIS = {("/", "websocket"), ("/events", "http")}
"""Where a CLI that connected to `/` talks: the second is for one that posts what it says."""


class Gate:
    """The outermost layer of the app.

    Requests below `/api` need a login or a token. The endpoints of runners, CLIs, agents and of
    inbound webhooks check their own tokens, and are not for browsers at all.
    """

    def __init__(
        self,
        access: Access,
        inner: ASGIApp,
        *,
        stream: ASGIApp,
        runner: ASGIApp | None = None,
        cli: ASGIApp | None = None,
        metrics: ASGIApp | None = None,
        requests: Requests | None = None,
        limits: RequestLimits | None = None,
        relay: RelayAccess | None = None,
        inbound: ASGIApp | None = None,
        mcp: ASGIApp | None = None,
        program: ASGIApp | None = None,
        peers: ASGIApp | None = None,
    ) -> None:
        self._access = access
        self._under_way = UnderWay(limits)
        self._inner = inner
        self._stream = stream
        self._runner = runner
        self._cli = cli
        self._metrics = metrics
        self._relay = relay
        self._inbound = inbound
        self._mcp = mcp
        self._program = program
        self._peers = peers
        self._packer = Packer()
        self._requests = requests or Requests()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection or request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        visit: Visit | None = None
        send = self._requests.count_answer(scope, send)
        try:
            visit = self._access.places.visit(scope)
            app = self._admit(scope, visit)
        except Refused as refused:
            await _refuse(scope, receive, send, refused.problem, refused.headers, visit)
            return
        except Exception as error:  # noqa: BLE001  (the boundary: an error becomes an answer)
            await _refuse(scope, receive, send, problem_of(error), (), visit)
            return
        served = self._within_limits(self._while_valid(app))
        await _pass(served, scope, receive, send, visit, self._packer)

    def _within_limits(self, app: ASGIApp) -> ASGIApp:
        """The app, as long as its client has not too much under way."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            person = scope.get("quarterdeck.person")
            if scope["type"] == "websocket" and (
                not isinstance(person, Person)
                or person.role is Role.RUNNER
                or path_of(scope) == PROGRAM_PATH
            ):
                await app(scope, receive, send)  # a runner or a CLI: one for each agent
                return
            client = person.grant if isinstance(person, Person) else scope["client"][0]
            begun = False
            answering: Callable[[], None] = _nothing

            async def send_and_note(message: Message) -> None:
                nonlocal begun
                if not begun:
                    begun = True
                    answering()
                await send(message)

            try:
                with self._under_way.count(client):
                    if scope["type"] == "websocket":
                        await app(scope, receive, send_and_note)
                        return
                    reads = scope["method"] in {"GET", "HEAD"}
                    async with self._under_way.turn(client, reads=reads) as answering:
                        with self._under_way.body(client, receive) as bounded:
                            await app(scope, bounded, send_and_note)
            except Refused as refused:
                if begun:
                    raise
                visit: Visit = scope["quarterdeck.visit"]
                await _refuse(scope, receive, send, refused.problem, refused.headers, visit)

        return serve

    def _while_valid(self, app: ASGIApp) -> ASGIApp:
        """The app, as long as the access of the person is valid."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            person = scope.get("quarterdeck.person")
            connections = self._access.connections
            if not isinstance(person, Person):
                await app(scope, receive, send)
            elif scope["type"] == "websocket":
                strict = person.role is Role.RUNNER or path_of(scope) == PROGRAM_PATH
                await serve_socket(
                    connections, person.grant, app, scope, receive, send, strict=strict
                )
            else:
                await serve_request(connections, person.grant, app, scope, receive, send)

        return serve

    def _admit(self, scope: Scope, visit: Visit) -> ASGIApp:
        """Where this goes. Raises `Refused`."""
        path = path_of(scope)
        scope["quarterdeck.visit"] = visit
        scope["client"] = (visit.address, 0)  # as a proxy that we believe has it
        if path == "/runner" or path.startswith("/runner/"):
            scope["quarterdeck.person"] = self._access.bearer(scope)
            return _not_for_pages(scope, self._runner)
        if path == PROGRAM_PATH:
            scope["quarterdeck.person"] = self._access.bearer(scope)
            return _not_for_pages(scope, self._program)
        if path.startswith("/v1/") or (path, scope["type"]) in _OF_CLIS:
            return _not_for_pages(scope, self._cli)
        if path.startswith("/in/") and scope["type"] == "http":
            return _not_for_pages(scope, self._inbound)
        if path.startswith("/hub/") and scope["type"] == "http":
            return _not_for_pages(scope, self._peers)
        if path == "/mcp" and scope["type"] == "http":
            self._access.places.check_origin(scope, visit, cookie=False)  # no cookie is read here
            scope["quarterdeck.person"] = self._access.bearer(scope)  # None: perhaps an agent
            if self._mcp is None:
                raise Refused("not_found", "this server has no such endpoint")
            return self._mcp
        if (path, scope["type"]) == ("/ws", "websocket") and self._relay is not None:
            return self._relay.admit(scope, visit)  # it has its own rules for origins
        by_cookie = not headers_of(scope, b"authorization")
        self._access.places.check_origin(
            scope, visit, cookie=by_cookie and bool(self._access.cookie_values(scope))
        )
        if path.startswith("/api/"):
            person = self._access.authenticate(scope, visit)
            scope["user"], scope["auth"] = person, None
            scope["quarterdeck.person"] = person
        if path.startswith(SHARED_PATHS) and scope["type"] == "http":
            self._admit_link(scope, visit)
        if path == "/metrics" and scope["type"] == "http":
            return self._measure(scope, visit)
        if scope["type"] == "websocket":
            if path == "/api/stream":
                if scope["user"].may(Right.STEER):
                    allow_large_messages(scope)
                return self._stream
            raise Refused("not_found", "there is no WebSocket here")
        return self._inner

    def _admit_link(self, scope: Scope, visit: Visit) -> None:
        """A link to one session: what it may read is in the grant, and nothing else."""
        grant = self._access.share_grant(scope, visit)
        person = Person(name=grant.name, role=grant.role, grant=grant.id, expires=grant.expires)
        scope["user"], scope["auth"] = person, None
        scope["quarterdeck.person"], scope["quarterdeck.link"] = person, grant

    def _measure(self, scope: Scope, visit: Visit) -> ASGIApp:
        person = self._access.authenticate(scope, visit)
        if not person.may(Right.READ):
            person.need(Right.MEASURE)
        if self._metrics is None:
            raise Refused("not_found", "this server has no metrics")
        return self._metrics


def _nothing() -> None:
    """What ends with an answer that has no turn."""


def _not_for_pages(scope: Scope, endpoint: ASGIApp | None) -> ASGIApp:
    """An endpoint of machines, which checks their tokens itself. A page has no business there."""
    if headers_of(scope, b"origin"):
        raise Refused("origin_not_allowed", "this is not for browsers")
    if endpoint is None:
        raise Refused("not_found", "this server has no such endpoint")
    return endpoint


async def _pass(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, visit: Visit, packer: Packer
) -> None:
    """Have the app answer, with headers that keep browsers from harm."""
    private = path_of(scope).startswith(("/api/", SHARED_PATHS)) or path_of(scope) == "/metrics"
    socket = begun = scope["type"] == "websocket"

    async def send_hardened(message: Message) -> None:
        nonlocal begun
        if message["type"] == "http.response.start":
            begun = True
            message["headers"] = _harden(message["headers"], strict=visit.pins_tls, private=private)
        await send(message)

    answering = send
    if not socket:
        api = path_of(scope).startswith("/api/")
        answering = compress_send(scope, send_hardened, packer) if api else send_hardened
    try:
        await app(scope, receive, answering)
    except asyncio.CancelledError:
        # The server stops and has waited long enough. This is the end of the request's task: there
        # is nobody above who needs to know, but a client who does.
        if not begun:
            await _refuse(scope, receive, send, problem("stopping"), (), visit)


async def _refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    found: Problem,
    headers: Headers,
    visit: Visit | None,
) -> None:
    strict = visit is not None and visit.pins_tls
    hard = _harden(headers, strict=strict, private=True)
    if scope["type"] == "websocket":
        await refuse_upgrade(receive, send, found.status, encode(found), MEDIA_TYPE, hard)
    else:
        await respond(send, found.status, encode(found), MEDIA_TYPE, hard)


def _harden(
    headers: Sequence[tuple[bytes, bytes]], *, strict: bool, private: bool
) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with the security headers; those that are set are kept."""
    have = {bytes(name).lower() for name, _ in headers}
    more = [*_HEADERS]
    if strict:
        more.append(_STRICT_TRANSPORT)
    if private:
        more.append(_NO_STORE)
    return [*headers, *(row for row in more if row[0] not in have)]
