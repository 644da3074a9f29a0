"""Who gets in: tokens for programs, cookies for browsers, login codes for people.

Owns the tokens' file, the places where this server may be met, and the count of failures. The
gate asks it about every request; the commands of the terminal use it to make tokens and links.
It knows nothing of sessions: a CLI's own token opens its own session only, and is checked there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from quarterdeck.fronts.http.asgi import Scope, header_of, headers_of
from quarterdeck.fronts.http.open_connections import OpenConnections
from quarterdeck.fronts.http.places import Places, Visit
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.roles import Person, Role
from quarterdeck.fronts.http.throttle import Throttle
from quarterdeck.fronts.http.tokens import BROWSER_SECONDS, CODE_SECONDS, Grant, Kind, TokenFile

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="quarterdeck"'),)


class Access:
    """Everything that decides who gets in."""

    def __init__(
        self,
        folder: Path,
        *,
        places: Places | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.places = places or Places()
        self._tokens = TokenFile(folder, clock=clock)
        self.connections = OpenConnections(self._tokens.valid)
        # Apart, since a forgotten tab with an old cookie must not keep its person from a login.
        self._failed_codes = Throttle(clock=clock)
        self._failed_tokens = Throttle(clock=clock)

    # --- for whoever holds the data folder ---

    @property
    def has_owner(self) -> bool:
        """Whether any owner can get in; else a login code is to be made and shown."""
        return any(
            grant.role is Role.OWNER and grant.kind is not Kind.CODE
            for grant in self._tokens.grants()
        )

    def make_code(self, name: str = "owner", role: Role = Role.OWNER) -> str:
        """A code for one login, for ten minutes."""
        return self._tokens.make(name, role, Kind.CODE, seconds=CODE_SECONDS)

    def make_token(self, name: str, role: Role, *, seconds: float | None = None) -> str:
        """A bearer token for a program or a runner. It is shown once and not kept."""
        return self._tokens.make(name, role, Kind.TOKEN, seconds=seconds)

    def grants(self) -> list[Grant]:
        """Who has access, oldest first."""
        return self._tokens.grants()

    def revoke(self, grant: str) -> None:
        """Take access back, from open connections too. Raises `NotFound`."""
        self._tokens.revoke(grant)
        self.connections.check_soon()

    def runner_named(self, token: str) -> str | None:
        """The name of the machine whose token this is; None for anybody else's."""
        person = self._tokens.who(token, kind=Kind.TOKEN)
        return person.name if person is not None and person.role is Role.RUNNER else None

    # --- for the gate ---

    def runner(self, scope: Scope) -> Person | None:
        """The runner whose token this is, or None. What a runner may do is checked elsewhere."""
        scheme, _, token = (header_of(scope, b"authorization") or "").partition(" ")
        return self._tokens.who(token, kind=Kind.TOKEN) if scheme.lower() == "bearer" else None

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies know no ports: two hubs on one host need two names."""
        return f"quarterdeck_{self._tokens.install}"

    def cookie_value(self, scope: Scope) -> str | None:
        """What a browser sent for our cookie."""
        # By hand: the library gives up on a whole header for one odd cookie of another server on
        # the same host, and on localhost there are many of those.
        for header in headers_of(scope, b"cookie"):
            for part in header.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.cookie:
                    return value
        return None

    def authenticate(self, scope: Scope, visit: Visit) -> Person:
        """Who asks. Raises `Refused`: no token, a wrong one, or too many of those."""
        authorization = header_of(scope, b"authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise Refused("unauthorized", "a Bearer token is wanted", headers=_CHALLENGE)
            person = self._tokens.who(token.strip(), kind=Kind.TOKEN)
        else:
            cookie = self.cookie_value(scope)
            if cookie is None:
                raise Refused("unauthorized", "no token and no login", headers=_CHALLENGE)
            person = self._tokens.who(cookie, kind=Kind.BROWSER)
        if person is not None:
            return person  # also while others fail from the same address: it is no guess
        self._refuse_often(self._failed_tokens, visit.address)
        self._failed_tokens.failed(visit.address)
        raise Refused("unauthorized", "the token or login is not valid", headers=_CHALLENGE)

    def is_valid(self, person: Person) -> bool:
        """Whether somebody who got in may stay."""
        return self._tokens.is_valid(person.grant)

    def login(self, code: str, visit: Visit) -> tuple[str, Person]:
        """Exchange a code for a cookie's value. Raises `Refused`. Writes a file: use a thread."""
        self._refuse_often(self._failed_codes, visit.address)
        found = self._tokens.redeem(code)
        if found is None:
            self._failed_codes.failed(visit.address)
            raise Refused("bad_code", "ask for a new link with: quarterdeck token --login")
        self._failed_codes.succeeded(visit.address)
        return found

    def set_cookie(self, value: str, visit: Visit) -> str:
        """The Set-Cookie header for a login; an empty value ends it."""
        age = int(BROWSER_SECONDS) if value else 0
        secure = "; Secure" if visit.secure else ""
        return f"{self.cookie}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"

    def _refuse_often(self, throttle: Throttle, address: str) -> None:
        if seconds := throttle.wait(address):
            wait = str(math.ceil(seconds))
            raise Refused(
                "too_many_failures",
                f"try again in {wait} s",
                headers=((b"retry-after", wait.encode()),),
            )


def login_link(base: str, code: str) -> str:
    """The link for a person. The code is in the fragment: no browser sends it, nobody logs it."""
    return f"{base.rstrip('/')}/login#{code}"
