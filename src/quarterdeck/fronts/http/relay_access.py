"""Who may use the relay at `/ws`: as everywhere by a token, or by an origin that was opted in.

A frontend in a browser cannot set headers: it offers its token as a subprotocol. Frontends that
know no token are let in only from a page on this machine whose origin the owner has named, and only
with the role that the owner gave to all of them. That is weaker than a token, since any program on
this machine can claim an origin: `doctor` warns about it.

Below the gate. The relay itself is an ASGI app that asks `caller_of` for the person.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio

from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.asgi import (
    ASGIApp,
    Receive,
    Scope,
    Send,
    allow_large_messages,
    headers_of,
)
from quarterdeck.fronts.http.origins import LOOPBACK_NAMES, Visit
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.roles import Person
from quarterdeck.protocol.roles import Right, Role

TOKEN_PROTOCOL = "quarterdeck.token."  # noqa: S105 - the beginning of a subprotocol's name
_CALLER = "quarterdeck.caller"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class RelayRules(Value):
    """Whether there is a relay, and who may use it without a token."""

    enabled: bool = False
    origins: tuple[str, ...] = ()
    """As `http://localhost:5173`."""
    role: Role = Role.VIEWER
    """The role of a frontend without a token."""

    @classmethod
    def of(cls, *, enabled: bool, origins: tuple[str, ...], role: Role) -> RelayRules:
        """Check what a person configured. Raises `UsageError` for what cannot be right."""
        for origin in origins:
            found = _normal(origin)
            if found is None:
                raise UsageError(f"allow_origins: {origin!r} is not like http://localhost:5173")
            if not is_loopback(urlsplit(found).hostname or ""):
                raise UsageError(
                    f"allow_origins: {origin!r} is not on this machine; frontends elsewhere need"
                    " a token"
                )
        return cls(
            enabled=enabled,
            origins=tuple(_normal(origin) or "" for origin in origins),
            role=role,
        )


class RelayAccess:
    """Lets frontends in, and out again when their origin is not opted in any more."""

    def __init__(self, access: Access, app: ASGIApp, rules: RelayRules | None = None) -> None:
        self._access = access
        self._app = app
        self._rules = rules or RelayRules()
        self._guests: dict[anyio.CancelScope, str] = {}
        """Frontends without a token, by their origin."""

    def change(self, rules: RelayRules) -> None:
        """Have other rules from now on. Frontends that they would not let in are disconnected."""
        same = rules.enabled and rules.role is self._rules.role
        self._rules = rules
        for guest, origin in list(self._guests.items()):
            if not same or origin not in rules.origins:
                guest.cancel()

    def admit(self, scope: Scope, visit: Visit) -> ASGIApp:
        """Where a frontend goes. Raises `Refused`."""
        if not self._rules.enabled:
            raise Refused("not_found", "the relay is off: see [relay] in the configuration")
        origin = self._origin(scope)
        token = _offered_token(scope)
        if token is not None:
            rows = [row for row in scope["headers"] if bytes(row[0]).lower() != b"authorization"]
            scope["headers"] = [*rows, (b"authorization", b"Bearer " + token.encode())]
        has_token = bool(headers_of(scope, b"authorization"))
        if origin is not None and not has_token:
            # A page on this machine sends our cookie, too, whatever its port: it says nothing.
            return self._guest(scope, visit, origin)
        if origin is None:
            cookie = not has_token and bool(self._access.cookie_values(scope))
            self._access.places.check_origin(scope, visit, cookie=cookie)
        person = self._access.authenticate(scope, visit)
        scope["quarterdeck.person"] = person
        _let_in(scope, person)
        return self._app

    def _origin(self, scope: Scope) -> str | None:
        """The origin of a page that was opted in; None for another, or for no page."""
        given = headers_of(scope, b"origin")
        found = _normal(given[0]) if len(given) == 1 else None
        return found if found is not None and found in self._rules.origins else None

    def _guest(self, scope: Scope, visit: Visit, origin: str) -> ASGIApp:
        """A frontend without a token."""
        name = urlsplit(f"//{visit.host}").hostname or ""
        if not is_loopback(visit.address) or name not in LOOPBACK_NAMES:
            raise Refused("unauthorized", "without a token only from this machine")
        _let_in(scope, Person(name=f"relay {origin}", role=self._rules.role, grant=""))

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            with anyio.CancelScope() as serving:
                self._guests[serving] = origin
                try:
                    await self._app(scope, receive, send)
                finally:
                    del self._guests[serving]

        return serve


def _let_in(scope: Scope, person: Person) -> None:
    scope[_CALLER] = person
    if person.may(Right.STEER):  # a prompt may carry images
        allow_large_messages(scope)


def caller_of(scope: Scope) -> Person:
    """The person behind a frontend that was let in."""
    person = scope[_CALLER]
    assert isinstance(person, Person)
    return person


def _offered_token(scope: Scope) -> str | None:
    """The token that a frontend offers as a subprotocol."""
    for header in headers_of(scope, b"sec-websocket-protocol"):
        for offered in header.split(","):
            if offered.strip().startswith(TOKEN_PROTOCOL):
                return offered.strip().removeprefix(TOKEN_PROTOCOL)
    return None


def _normal(origin: str) -> str | None:
    """An origin in one way of writing; None if it is none."""
    try:
        parts = urlsplit(origin.strip())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.path not in {"", "/"}:
        return None
    if parts.query or parts.fragment or parts.username is not None:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or _DEFAULT_PORTS[parts.scheme]}"
