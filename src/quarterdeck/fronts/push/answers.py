"""One-time tokens with which a notification answers its question.

A token is bound to one question and to the login whose browser was told. It works once, for some
hours, and only together with that login's cookie: who reads a notification alone can do nothing.
Tokens are kept in memory as hashes; after a restart of the hub the person answers on the page.

Owns also which calls a notification may allow: only what it shows completely. A call whose input is
cut, hidden or elsewhere can be denied there, and opened.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Collection
from hashlib import sha256

import msgspec

from quarterdeck.domain.marks import mark_invisible
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import AskKind, AskOpened

VALID_SECONDS = 6 * 3600.0
MOST = 4000
"""Tokens that are valid; the oldest go first."""
LONGEST_COMMAND = 180
"""Characters of a command that every notification shows whole, after the name of its tool."""
SHOWN_MEMBERS = frozenset({"command", "description"})
"""The input of a command that only has these members is shown by its command."""


class _Issued(Value):
    digest: bytes
    grant: str
    ask: str
    allow: bool
    ends: float


class AnswerTokens:
    """The tokens of one hub."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._issued: dict[str, _Issued] = {}
        self._clock = clock

    def issue(self, grant: str, ask: str, *, allow: bool) -> str:
        """A token for one login and one question; without `allow` it can only deny."""
        now = self._clock()
        self._issued = {id_: one for id_, one in self._issued.items() if one.ends > now}
        while len(self._issued) >= MOST:
            del self._issued[next(iter(self._issued))]
        id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        self._issued[id_] = _Issued(
            digest=_digest(secret), grant=grant, ask=ask, allow=allow, ends=now + VALID_SECONDS
        )
        return f"{id_}.{secret}"

    def redeem(self, token: str, grants: Collection[str], *, allow: bool) -> tuple[str, str] | None:
        """The login and the question of a token, which then works no more; None for a wrong one.

        A token of another login stays valid: who cannot use it must not be able to spoil it.
        """
        id_, _, secret = token.partition(".")
        found = self._issued.get(id_)
        wanted = found.digest if found is not None else b"\0" * 32
        same = hmac.compare_digest(_digest(secret), wanted)
        if found is None or not same or found.grant not in grants or found.ends <= self._clock():
            return None
        if allow and not found.allow:
            return None
        # All notifications of this question, on all devices of this login, are spent together.
        self._issued = {
            other: one
            for other, one in self._issued.items()
            if (one.ask, one.grant) != (found.ask, found.grant)
        }
        return found.grant, found.ask

    def settled(self, ask: str) -> None:
        """The question is answered or withdrawn."""
        self._issued = {id_: one for id_, one in self._issued.items() if one.ask != ask}


class _Input(msgspec.Struct):
    input: dict[str, object] = {}


def can_deny(opened: AskOpened) -> bool:
    """Whether a notification may deny it: permission requests, and neither plans nor questions."""
    return opened.ask_kind is AskKind.TOOL


def shown_whole(opened: AskOpened) -> str | None:
    """The command that a notification shows completely; None for any other call."""
    if opened.ask_kind is not AskKind.TOOL or opened.tool != "Bash" or opened.answered_by:
        return None
    try:
        given = msgspec.json.decode(opened.request, type=_Input).input
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    command = given.get("command")
    if not isinstance(command, str) or not SHOWN_MEMBERS.issuperset(given):
        return None
    plain = command.isprintable() and mark_invisible(command, code=True) == command
    if not command or not plain or len(command) > LONGEST_COMMAND:
        return None
    return command


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
