"""The file of tokens, stored as keyed hashes and never as the tokens themselves.

Below `access`. Any process of the same user may change the file (`quarterdeck token` does so while
the hub runs): each change is made under a lock and put in place whole, and readers notice it. To
be able to write the file is the right to give access; there is no other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from quarterdeck.domain.errors import Conflict, Forbidden, NotFound, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.roles import Person
from quarterdeck.protocol.roles import Role
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.files import replace_file

logger = logging.getLogger(__name__)

CODE_SECONDS = 600.0  # a login link is opened at once, or is asked for again
BROWSER_SECONDS = 90 * 86400.0
OPEN_OWNER_SECONDS = 30 * 86400.0  # without TLS, for who may do everything
BROWSERS_KEPT = 200  # the oldest logins go first: the file stays small whatever happens
NAME_LIMIT = 64
PAIRING_SECONDS = 600.0
PAIRED_SECONDS = 365 * 86400.0
PAIRINGS_KEPT = 20  # codes of one grant that nobody has used yet
PAIRED_KEPT = 20  # chats of one grant; the oldest go first
SHARES_KEPT = 200  # links that are valid
SHARED = "session:"
"""What the label of a link begins with; the id of its session follows."""

_PREFIX = "qd"  # so that scanners for leaked secrets can know ours
_ID_BYTES, _SECRET_BYTES = 6, 32
_CODE_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # no letter that is taken for a digit
_CODE_GROUPS, _CODE_GROUP = 3, 4  # 60 bits, for ten minutes and few tries


class Kind(StrEnum):
    """What a grant is for."""

    TOKEN = "token"  # noqa: S105  (the name of a kind)
    BROWSER = "browser"
    CODE = "code"
    """Exchanged once, for a browser's grant."""
    PAIRING = "pairing"
    """Exchanged once, for the token of a person in a chat."""
    SHARE = "share"
    """A read-only link to one session. It opens nothing else."""


class Grant(Value):
    """Access of a person or a program. `digest` is the keyed hash of its secret."""

    id: str
    name: str
    role: Role
    kind: Kind
    digest: str
    made: float
    expires: float | None = None
    page: str = ""
    """For a browser: the keyed hash of its page key, without which the cookie opens nothing."""
    label: str = ""
    """What the token is used by, such as `telegram:1234`."""
    until: float | None = None
    """For a pairing: when the token that it is exchanged for expires at the latest."""
    parent: str = ""
    """For a pairing and its token: the grant of who made it, with which it ends."""


class Login(Value):
    """What a code was exchanged for. `page_key` is for the page, which keeps it by its origin."""

    cookie: str
    page_key: str
    seconds: float
    person: Person


class Paired(Value):
    """What a pairing was exchanged for."""

    token: str
    person: Person


class _Contents(Value):
    key: str
    """Makes the hashes of one file useless for another."""
    install: str
    grants: tuple[Grant, ...] = ()


class TokenFile:
    """The tokens in one file. Blocking, quick, and safe to use from several threads."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        make_private(folder)
        self._path = folder / "access.json"
        self._lock_path = folder / "access.lock"
        self._clock = clock
        self._mutex = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        with self._change_contents() as contents:
            self._contents = contents

    @property
    def install(self) -> str:
        """A short name for this file, which is no secret."""
        return self._contents.install

    def grants(self) -> list[Grant]:
        """All that are valid now, oldest first."""
        return [grant for grant in self._fresh().grants if not self._is_over(grant)]

    def who(self, token: str, *, kind: Kind) -> Person | None:
        """Whose token this is, or None."""
        contents = self._fresh()
        grant = self._find(contents, token, kind)
        if grant is None:
            return None
        return Person(name=grant.name, role=grant.role, grant=grant.id, expires=grant.expires)

    def has_page_key(self, grant_id: str, key: str) -> bool:
        """Whether this is the page key of a browser's grant."""
        contents = self._fresh()
        named = next((grant for grant in contents.grants if grant.id == grant_id), None)
        wanted = named.page if named is not None and named.page else "0" * 64
        return hmac.compare_digest(_digest(contents.key, key), wanted)

    def is_valid(self, grant_id: str) -> bool:
        """Whether a grant is neither revoked nor expired."""
        return grant_id in self.valid()

    def valid(self) -> set[str]:
        """The ids of the grants that are neither revoked nor expired."""
        return {grant.id for grant in self.grants()}

    def make(self, name: str, role: Role, kind: Kind, *, seconds: float | None = None) -> str:
        """Create a grant. Its token is returned once and not stored."""
        _check_name(name)
        with self._change_contents() as contents:
            token, grant = self._new(contents, name, role, kind, seconds)
            self._write(contents, (*contents.grants, grant))
        return token

    def redeem(self, code: str, *, secure: bool) -> Login | None:
        """Exchange a code for a browser's token: once. None for a wrong, old or used one."""
        with self._change_contents() as contents:
            used = self._find(contents, code, Kind.CODE)
            if used is None:
                return None
            shorter = used.role is Role.OWNER and not secure
            seconds = OPEN_OWNER_SECONDS if shorter else BROWSER_SECONDS
            token, grant = self._new(contents, used.name, used.role, Kind.BROWSER, seconds=seconds)
            page_key = secrets.token_urlsafe(_SECRET_BYTES)
            grant = msgspec.structs.replace(grant, page=_digest(contents.key, page_key))
            rest = tuple(other for other in contents.grants if other.id != used.id)
            self._write(contents, (*rest, grant))
        person = Person(name=grant.name, role=grant.role, grant=grant.id, expires=grant.expires)
        return Login(cookie=token, page_key=page_key, seconds=seconds, person=person)

    def make_pairing(
        self, name: str, role: Role, *, until: float | None = None, parent: str = ""
    ) -> str:
        """Create a code that a person types into a chat: once, within ten minutes.

        Raises `Forbidden` for a `parent` that is a chat itself: what it paired would go on when it
        is revoked.
        """
        _check_name(name)
        letters = [secrets.choice(_CODE_LETTERS) for _ in range(_CODE_GROUPS * _CODE_GROUP)]
        code = "".join(letters)
        with self._change_contents() as contents:
            if any(grant.id == parent and grant.label for grant in contents.grants):
                raise Forbidden("a chat cannot pair another chat: use the web app or a terminal")
            _, grant = self._new(contents, name, role, Kind.PAIRING, PAIRING_SECONDS)
            grant = msgspec.structs.replace(
                grant, digest=_digest(contents.key, code), until=until, parent=parent
            )
            rest = _without_surplus(contents.grants, Kind.PAIRING, parent, PAIRINGS_KEPT)
            self._write(contents, (*rest, grant))
        groups = range(0, len(code), _CODE_GROUP)
        return "-".join(code[at : at + _CODE_GROUP] for at in groups)

    def cancel_pairing(self, code: str) -> None:
        """Let a pairing's code work no more, if there is such a code."""
        with self._change_contents() as contents:
            found = self._pairing(contents, code)
            if found is not None:
                rest = tuple(grant for grant in contents.grants if grant.id != found.id)
                self._write(contents, rest)

    def redeem_pairing(self, code: str, label: str) -> Paired | None:
        """Exchange a pairing's code for a token: once. None for a wrong, old or used one."""
        with self._change_contents() as contents:
            used = self._pairing(contents, code)
            if used is None:
                return None
            seconds = PAIRED_SECONDS
            if used.until is not None:
                seconds = min(seconds, used.until - self._clock())
            token, grant = self._new(contents, used.name, used.role, Kind.TOKEN, seconds)
            grant = msgspec.structs.replace(grant, label=label, parent=used.parent)
            # The chat may have had another token of the same person: nobody has that any more.
            rest = tuple(
                other
                for other in contents.grants
                if other.id != used.id and (other.label, other.name) != (label, used.name)
            )
            if used.parent:
                rest = _without_surplus(rest, Kind.TOKEN, used.parent, PAIRED_KEPT)
            self._write(contents, (*rest, grant))
        person = Person(name=grant.name, role=grant.role, grant=grant.id, expires=grant.expires)
        return Paired(token=token, person=person)

    def make_share(self, name: str, session: str, *, seconds: float) -> tuple[str, Grant]:
        """Create a link to one session. Its secret is returned once and not stored.

        Raises `Conflict` if there are too many.
        """
        _check_name(name)
        with self._change_contents() as contents:
            valid = [each for each in contents.grants if each.kind is Kind.SHARE]
            if sum(not self._is_over(each) for each in valid) >= SHARES_KEPT:
                raise Conflict("too_many_shares", f"{SHARES_KEPT} links are valid: revoke some")
            token, grant = self._new(contents, name, Role.VIEWER, Kind.SHARE, seconds)
            grant = msgspec.structs.replace(grant, label=SHARED + session)
            self._write(contents, (*contents.grants, grant))
        return token, grant

    def share(self, token: str) -> Grant | None:
        """The link that this is the secret of, or None."""
        return self._find(self._fresh(), token, Kind.SHARE)

    def revoke(self, grant_id: str) -> None:
        """Take a grant back, and the chats that were paired by it. Raises `NotFound`."""
        with self._change_contents() as contents:
            rest = tuple(
                grant for grant in contents.grants if grant_id not in {grant.id, grant.parent}
            )
            # Most grants have no parent: the empty id would be that of all of them.
            if not grant_id or len(rest) == len(contents.grants):
                raise NotFound("token", grant_id)
            self._write(contents, rest)

    # --- one token ---

    def _new(
        self, contents: _Contents, name: str, role: Role, kind: Kind, seconds: float | None
    ) -> tuple[str, Grant]:
        now = self._clock()
        grant_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        grant = Grant(
            id=grant_id,
            name=name,
            role=role,
            kind=kind,
            digest=_digest(contents.key, secret),
            made=now,
            expires=None if seconds is None else now + seconds,
        )
        return f"{_PREFIX}_{grant_id}_{secret}", grant

    def _find(self, contents: _Contents, token: str, kind: Kind) -> Grant | None:
        prefix, _, rest = token.partition("_")
        grant_id, _, secret = rest.partition("_")
        named = next((grant for grant in contents.grants if grant.id == grant_id), None)
        # An unknown id costs as much as a wrong secret.
        wanted = named.digest if named else "0" * 64
        same = hmac.compare_digest(_digest(contents.key, secret), wanted)
        if named is None or not same or prefix != _PREFIX or named.kind is not kind:
            return None
        return None if self._is_over(named) else named

    def _pairing(self, contents: _Contents, code: str) -> Grant | None:
        digest = _digest(contents.key, _plain_code(code))
        return next(
            (
                grant
                for grant in contents.grants
                if grant.kind is Kind.PAIRING
                and hmac.compare_digest(grant.digest, digest)
                and not self._is_over(grant)
            ),
            None,
        )

    def _is_over(self, grant: Grant) -> bool:
        return grant.expires is not None and grant.expires <= self._clock()

    # --- the file ---

    def _fresh(self) -> _Contents:
        with self._mutex:
            if self._stat() != self._stamp:
                try:
                    self._contents = self._read()
                except (UsageError, OSError) as error:
                    # Until the file is repaired, no token is valid.
                    logger.error("%s", error)
                    self._contents = msgspec.structs.replace(self._contents, grants=())
            return self._contents

    @contextlib.contextmanager
    def _change_contents(self) -> Iterator[_Contents]:
        """The current contents. No other process changes them before the block ends."""
        with self._mutex, _hold_lock(self._lock_path):
            yield self._read()

    def _read(self) -> _Contents:
        self._stamp = self._stat()
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            contents = _Contents(key=secrets.token_hex(32), install=secrets.token_hex(4))
            self._write(contents, ())
            return contents
        try:
            return msgspec.json.decode(data, type=_Contents)
        except msgspec.DecodeError as error:
            # To begin anew would let everybody in who comes first.
            raise UsageError(f"{self._path}: not a file of tokens: {error}") from error

    def _write(self, old: _Contents, grants: tuple[Grant, ...]) -> None:
        kept = [grant for grant in grants if not self._is_over(grant)]
        browsers = [grant.id for grant in kept if grant.kind is Kind.BROWSER]
        surplus = set(browsers[: max(0, len(browsers) - BROWSERS_KEPT)])
        contents = _Contents(
            key=old.key,
            install=old.install,
            grants=tuple(grant for grant in kept if grant.id not in surplus),
        )
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(contents), indent=2))
        self._stamp = self._stat()
        self._contents = contents

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


@contextlib.contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _digest(key: str, secret: str) -> str:
    # The secrets are 256 bits of chance: there is nothing to guess, so a slow hash would only
    # slow us. The key keeps a stolen digest from being looked up anywhere else.
    return hashlib.blake2b(
        secret.encode("utf-8", "replace"), key=bytes.fromhex(key), digest_size=32
    ).hexdigest()


def _plain_code(code: str) -> str:
    """A code as it was made: people type it in small letters, and with other dashes."""
    plain = "".join(letter for letter in code.upper() if letter.isalnum())
    return plain.translate(str.maketrans("OIL", "011"))[:64]


def _without_surplus(
    grants: tuple[Grant, ...], kind: Kind, parent: str, most: int
) -> tuple[Grant, ...]:
    """The grants without the oldest of one person, so that there is room for a new one."""
    own = [grant.id for grant in grants if grant.kind is kind and grant.parent == parent]
    surplus = set(own[: max(0, len(own) - most + 1)])
    return tuple(grant for grant in grants if grant.id not in surplus)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > NAME_LIMIT or not name.isprintable():
        raise UsageError(f"name: 1 to {NAME_LIMIT} printable characters are wanted")
