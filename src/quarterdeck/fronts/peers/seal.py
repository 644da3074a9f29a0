"""How one hub knows that a request is from another: a seal in a header.

Only hubs have the secret: it is in the journal's store, and in no answer. A seal is for one hub,
one request and one body, for a short time and once. A hub's id is that of one process, so a seal
is worth nothing after a restart. The answer has a seal, too, which is for one request: so what is
answered is from the hub that was asked. Live text has a seal on each line. A seal hides nothing:
against readers on the way there must be TLS. The rest of the request is the endpoint's business.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress

from quarterdeck.domain.errors import Conflict, Forbidden
from quarterdeck.hub.api import Sharing

HEADER = "x-quarterdeck-seal"
SECONDS = 30.0
"""How old a seal may be, and how far the clocks of two hubs may differ."""
MOST_NONCES = 100_000
"""Seals that are remembered. With more in a minute none is accepted until some are too old."""
_NAMESPACE, _KEY = "hubs", "secret"
_LONGEST = 1024


class NoSeal(Forbidden):
    """The request is from no hub, or was there already: its answer gets no seal."""


class WrongHub(Forbidden):
    """The request is for another hub: one that was at this address before."""


async def shared_secret(journal: Sharing) -> bytes:
    """The secret of all hubs on a journal; the first one makes it."""
    found = await journal.shared_value(_NAMESPACE, _KEY)
    if found is None:
        with suppress(Conflict):  # another hub was faster
            await journal.share(_NAMESPACE, _KEY, os.urandom(32), expected=0)
        found = await journal.shared_value(_NAMESPACE, _KEY)
    assert found is not None
    return found.value


class Sealer:
    """Makes the seals of this hub, and checks those of others."""

    def __init__(self, secret: bytes, hub: str, *, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._hub = hub
        self._clock = clock
        self._used: dict[str, float] = {}

    def seal(self, to: str, method: str, path: str, body: bytes) -> str:
        """A seal for a request to the hub `to`."""
        digest = hashlib.sha256(body).hexdigest()
        parts = (self._hub, to, str(int(self._clock() * 1000)), secrets.token_hex(16), digest)
        return " ".join((*parts, self._mac(method, path, parts)))

    def open(self, seal: str, method: str, path: str) -> str:
        """Check a seal before anything else is read; gives the digest that the body must have.

        Raises `Forbidden`; `WrongHub` if it is genuine, and for another hub.
        """
        parts = tuple(seal.split(" ")) if len(seal) <= _LONGEST else ()
        if len(parts) != 6:
            raise NoSeal("this is for other hubs")
        *said, mac = parts
        if not hmac.compare_digest(mac.encode(), self._mac(method, path, tuple(said)).encode()):
            raise NoSeal("this is for other hubs")
        _, to, at, nonce, digest = said
        if to != self._hub:
            raise WrongHub("this hub is another one")
        now = self._clock()
        if abs(now - int(at) / 1000) > SECONDS:
            raise Forbidden("the seal is too old, or the clocks of the hubs differ")
        self._use(nonce, now)
        return digest

    def _use(self, nonce: str, now: float) -> None:
        """A seal is good once."""
        old = now - 2 * SECONDS
        while self._used and next(iter(self._used.values())) < old:
            del self._used[next(iter(self._used))]
        if nonce in self._used:
            # Without a seal: else the refusal of a copy could stand for the answer to the request.
            raise NoSeal("this seal was used already")
        if len(self._used) >= MOST_NONCES:
            raise Forbidden("too many requests of other hubs; try again")
        self._used[nonce] = now

    def seal_answer(self, seal: str, status: int, body: bytes) -> str:
        """The seal of an answer to a request with this seal."""
        digest = hashlib.sha256(body).hexdigest()
        return self._hmac("\n".join(("quarterdeck hub answer 1", seal, str(status), digest)))

    def seal_line(self, seal: str, number: int, line: bytes) -> str:
        """The seal of a line of the feed that a request with this seal has opened."""
        digest = hashlib.sha256(line).hexdigest()
        return self._hmac("\n".join(("quarterdeck hub line 1", seal, str(number), digest)))

    def _mac(self, method: str, path: str, parts: tuple[str, ...]) -> str:
        text = "\n".join(("quarterdeck hub 1", method, path, *parts))
        return self._hmac(text)

    def _hmac(self, text: str) -> str:
        return hmac.new(self._secret, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def is_same(seal: str, expected: str) -> bool:
    """Whether the seal of an answer is the expected one."""
    return hmac.compare_digest(seal.encode("utf-8", "replace"), expected.encode())


def check_digest(body: bytes, digest: str) -> None:
    """Raise `Forbidden` unless the body is the one that was sealed."""
    if not hmac.compare_digest(hashlib.sha256(body).hexdigest().encode(), digest.encode()):
        raise Forbidden("the body is not the one that was sealed")
