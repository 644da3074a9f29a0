"""Authentication: tokens for programs, cookies for browsers, login codes for people.

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
from quarterdeck.fronts.http.origins import Places, Visit
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.http.throttle import Throttle
from quarterdeck.fronts.http.tokens import CODE_SECONDS, Grant, Kind, Login, Paired, TokenFile
from quarterdeck.protocol.roles import Right, Role

COOKIES_TRIED = 8
PAGE_KEY_HEADER = b"x-quarterdeck-page-key"
STREAM_PROTOCOL = "quarterdeck"
"""The WebSocket subprotocol of the stream, for pages: they offer it, and `PAGE_KEY_PROTOCOL` with
their key, since a page can send no other header there."""
PAGE_KEY_PROTOCOL = "quarterdeck.page-key."

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="quarterdeck"'),)


class Access:
    """Everything that authentication needs."""

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
        self._failed_pairings = Throttle(clock=clock)
        """By who pairs, and not by address: all of them come through one bot."""

    # --- for the owner of the data folder ---

    @property
    def has_owner(self) -> bool:
        """Whether any owner can get in; else a login code is to be made and shown."""
        return any(
            grant.role is Role.OWNER and grant.kind not in {Kind.CODE, Kind.PAIRING}
            for grant in self._tokens.grants()
        )

    def make_code(self, name: str = "owner", role: Role = Role.OWNER) -> str:
        """A code for one login, for ten minutes."""
        return self._tokens.make(name, role, Kind.CODE, seconds=CODE_SECONDS)

    def make_token(self, name: str, role: Role, *, seconds: float | None = None) -> str:
        """A bearer token for a program or a runner. It is shown once and not kept."""
        return self._tokens.make(name, role, Kind.TOKEN, seconds=seconds)

    def make_pairing(
        self, name: str, role: Role, *, until: float | None = None, parent: str = ""
    ) -> str:
        """A code for one pairing of a chat, for ten minutes. It ends with the grant `parent`."""
        return self._tokens.make_pairing(name, role, until=until, parent=parent)

    def pair(self, code: str, label: str) -> Paired:
        """Exchange the code of a pairing for a token. Raises `Refused`. Writes a file."""
        if seconds := self._failed_pairings.wait(label):
            raise _too_often(seconds)
        found = self._tokens.redeem_pairing(code, label)
        if found is None:
            self._failed_pairings.note_failure(label)
            raise Refused("bad_code", "make a new code with: quarterdeck telegram pair")
        self._failed_pairings.note_success(label)
        return found

    def cancel_pairing(self, code: str) -> None:
        """Let the code of a pairing work no more. It does not say whether there was one: nobody
        can try codes with it. Writes a file.
        """
        self._tokens.cancel_pairing(code)

    def make_share(self, name: str, session: str, *, seconds: float) -> tuple[str, Grant]:
        """A read-only link to one session, and its secret. Raises `Conflict`. Writes a file."""
        return self._tokens.make_share(name, session, seconds=seconds)

    def grants(self) -> list[Grant]:
        """Who has access, oldest first."""
        return self._tokens.grants()

    def revoke(self, grant: str) -> None:
        """Take access back, from open connections too. Raises `NotFound`."""
        self._tokens.revoke(grant)
        self.connections.check_soon()

    def runner_named(self, token: str) -> str | None:
        """The name of the machine that the token belongs to; None if it is no runner's."""
        person = self._tokens.who(token, kind=Kind.TOKEN)
        return person.name if person is not None and person.role is Role.RUNNER else None

    def program_named(self, token: str) -> Person | None:
        """Whose token this is, if a program may connect its agent with it."""
        person = self._tokens.who(token, kind=Kind.TOKEN)
        return person if person is not None and person.may(Right.DIAL) else None

    # --- for the gate ---

    def bearer(self, scope: Scope) -> Person | None:
        """Whose token a request has, or None. What they may do there is checked elsewhere."""
        scheme, _, token = (header_of(scope, b"authorization") or "").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        return self._tokens.who(token.strip(), kind=Kind.TOKEN) if is_bearer else None

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies know no ports: two hubs on one host need two names."""
        return f"quarterdeck_{self._tokens.install}"

    def cookie_values(self, scope: Scope) -> list[str]:
        """What a browser sent for our cookie; another server on the host may have set one too."""
        # By hand: the library gives up on a whole header for one odd cookie of another server on
        # the same host, and on localhost there are many of those.
        found: list[str] = []
        for header in headers_of(scope, b"cookie"):
            for part in header.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.cookie:
                    found.append(value)
        return found[:COOKIES_TRIED]

    def authenticate(self, scope: Scope, visit: Visit) -> Person:
        """Who asks. Raises `Refused`: no token, a wrong one, or too many of those."""
        authorization = header_of(scope, b"authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise Refused("unauthorized", "a Bearer token is required", headers=_CHALLENGE)
            person = self._tokens.who(token.strip(), kind=Kind.TOKEN)
        else:
            cookies = self.cookie_values(scope)
            if not cookies:
                raise Refused("unauthorized", "no token and no login", headers=_CHALLENGE)
            person = self._browser(scope, cookies)
        if person is not None:
            return person  # also while others fail from the same address: it is no guess
        self._refuse_often(self._failed_tokens, visit.address)
        self._failed_tokens.note_failure(visit.address)
        raise Refused("unauthorized", "the token or login is not valid", headers=_CHALLENGE)

    def share_grant(self, scope: Scope, visit: Visit) -> Grant:
        """The link that a request brings as its bearer token. Raises `Refused`."""
        scheme, _, token = (header_of(scope, b"authorization") or "").partition(" ")
        found = self._tokens.share(token.strip()) if scheme.lower() == "bearer" else None
        if found is not None:
            return found
        self._refuse_often(self._failed_tokens, visit.address)
        self._failed_tokens.note_failure(visit.address)
        raise Refused("unauthorized", "the link has expired or was revoked", headers=_CHALLENGE)

    def browsers(self, scope: Scope) -> list[Person]:
        """Whose browser this is, by its cookie alone: nothing is allowed by that.

        It is for a service worker, which cannot have the page key and brings a one-time token.
        """
        found = [
            self._tokens.who(cookie, kind=Kind.BROWSER) for cookie in self.cookie_values(scope)
        ]
        return [person for person in found if person is not None]

    def _browser(self, scope: Scope, cookies: list[str]) -> Person | None:
        """Whose browser this is. Raises `Refused` for a cookie that does not come from our pages.

        A browser sends its cookie to every server on the same host, whatever its port. The page key
        is stored by the page itself, which shares it with no page on another port.
        """
        found = [self._tokens.who(cookie, kind=Kind.BROWSER) for cookie in cookies]
        people = [person for person in found if person is not None]
        key = page_key_of(scope)
        for person in people:
            if key and self._tokens.has_page_key(person.grant, key):
                return person
        if people and not key:
            raise Refused("page_key_missing", "log in on this page", headers=_CHALLENGE)
        return None

    def is_valid(self, person: Person) -> bool:
        """Whether the access of a person is still valid."""
        return self._tokens.is_valid(person.grant)

    def login(self, code: str, visit: Visit) -> Login:
        """Exchange a code for a login. Raises `Refused`. Writes a file: use a thread."""
        found = self._tokens.redeem(code, secure=visit.secure)
        if found is None:
            # A right code is no guess: others who fail from the same address keep nobody out.
            self._refuse_often(self._failed_codes, visit.address)
            self._failed_codes.note_failure(visit.address)
            raise Refused("bad_code", "Ask for a new link with: quarterdeck token --login")
        self._failed_codes.note_success(visit.address)
        return found

    def set_cookie(self, login: Login | None, visit: Visit) -> str:
        """The Set-Cookie header for a login; None ends it."""
        value, age = (login.cookie, int(login.seconds)) if login is not None else ("", 0)
        secure = "; Secure" if visit.secure else ""
        return f"{self.cookie}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"

    def _refuse_often(self, throttle: Throttle, address: str) -> None:
        if seconds := throttle.wait(address):
            raise _too_often(seconds)


def _too_often(seconds: float) -> Refused:
    wait = str(math.ceil(seconds))
    return Refused(
        "too_many_failures",
        f"try again in {wait} s",
        headers=((b"retry-after", wait.encode()),),
    )


def page_key_of(scope: Scope) -> str:
    """The page key that a request or a WebSocket of our pages brings; empty for none."""
    given = header_of(scope, PAGE_KEY_HEADER)
    if given is not None:
        return given.strip()
    for header in headers_of(scope, b"sec-websocket-protocol"):
        for offered in header.split(","):
            if offered.strip().startswith(PAGE_KEY_PROTOCOL):
                return offered.strip().removeprefix(PAGE_KEY_PROTOCOL)
    return ""


def login_link(base: str, code: str) -> str:
    """A login link. The code is in the fragment: no browser sends it, and no log has it."""
    return f"{base.rstrip('/')}/login#{code}"
