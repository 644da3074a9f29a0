"""One-time tokens with which a notification answers its question.

A token is bound to one question and to the login whose browser was told. It works once, for some
hours, and only together with that login's cookie: who reads a notification alone can do nothing.
A token is sealed with a secret that all hubs on one journal share, and stored nowhere: the hub that
gets the answer need not be the one that sent the notification. That a question is answered once is
the journal's rule; what is remembered here only spares it.

Owns also which calls a notification may allow: only what it shows completely. A call whose input is
cut, hidden or elsewhere can be denied there, and opened.
"""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection
from hashlib import sha256

import msgspec

from quarterdeck.domain.marks import mark_invisible
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.protocol.events import AskKind, AskOpened

VALID_SECONDS = 6 * 3600.0
MOST = 4000
"""Questions that are remembered as answered; the oldest go first."""
LONGEST_TOKEN = 1000
LONGEST_COMMAND = 180
"""Characters of a command that every notification shows whole, after the name of its tool."""
SHOWN_MEMBERS = frozenset({"command", "description"})
"""The input of a command that only has these members is shown by its command."""


class _Issued(Value, array_like=True):
    grant: str
    ask: str
    allow: bool
    ends: float
    nonce: str


class AnswerTokens:
    """The tokens of one hub, or of several with the same secret."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._settled: dict[str, None] = {}
        self._clock = clock

    def issue(self, secret: bytes, grant: str, ask: str, *, allow: bool) -> str:
        """A token for one login and one question; without `allow` it can only deny."""
        ends, nonce = self._clock() + VALID_SECONDS, secrets.token_hex(8)
        issued = _Issued(grant=grant, ask=ask, allow=allow, ends=ends, nonce=nonce)
        body = urlsafe_b64encode(msgspec.json.encode(issued)).decode()
        return f"{body}.{_seal(secret, body)}"

    def redeem(
        self, secret: bytes, token: str, grants: Collection[str], *, allow: bool
    ) -> tuple[str, str] | None:
        """The login and the question of a token, which then works no more; None for a wrong one.

        A token of another login stays valid: who cannot use it must not be able to spoil it.
        """
        body, _, seal = token.partition(".")
        wanted = _seal(secret, body).encode()
        if len(token) > LONGEST_TOKEN or not hmac.compare_digest(_bytes(seal), wanted):
            return None
        try:
            found = msgspec.json.decode(urlsafe_b64decode(body), type=_Issued)
        except (*DECODE_ERRORS, ValueError):
            return None
        if found.grant not in grants or found.ends <= self._clock() or found.ask in self._settled:
            return None
        if allow and not found.allow:
            return None
        # All notifications of this question, on all devices, are spent together.
        self.forget_ask(found.ask)
        return found.grant, found.ask

    def forget_ask(self, ask: str) -> None:
        """The question is answered or withdrawn."""
        self._settled[ask] = None
        while len(self._settled) > MOST:
            del self._settled[next(iter(self._settled))]


def _seal(secret: bytes, body: str) -> str:
    return hmac.new(secret, b"answer\n" + _bytes(body), sha256).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


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
