"""The tokens of CLIs that dial the hub: derived from a secret, each for one session.

Owns which of them were used, and which were taken back. A token is the HMAC of its session and of
how often the session's token was taken back before; so the file has no secret, only these counts.
A count is never forgotten: without it an old token would open the session again. If the file cannot
be read, no token is valid.

Above is `inbound_clis`, which serves the CLIs, and `quarterdeck token`, which changes the file
beside a hub that may be running.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import field
from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.runtime.files import replace_file

log = logging.getLogger(__name__)

ROOT = "/"
"""Stands for the token with which a CLI begins a new session."""
PREFIX, NEW = "cli.", "new"
"""How a person names a token: `cli.SESSION`, or `cli.new`."""
MOST_USED = 1000
"""Tokens that were used and never taken back; the oldest is forgotten, and stays valid."""


class UsedToken(Value):
    """A token of a session (or of `/`): since when it is used, in seconds, and how often the
    session's token was taken back.
    """

    since: float = 0.0
    revoked: int = 0


class _File(Value):
    tokens: dict[str, UsedToken] = field(default_factory=dict)


def token_id(session: str) -> str:
    """How a person names the token of a session."""
    return PREFIX + (NEW if session == ROOT else session)


def session_of(token: str) -> str | None:
    """The session whose token a person has named; None: it is no token of a CLI."""
    if not token.startswith(PREFIX):
        return None
    return ROOT if token == PREFIX + NEW else token.removeprefix(PREFIX)


def cli_token(secret: bytes, session: str, revoked: int = 0) -> str:
    """The token with which a CLI opens this session and no other; `/` stands for a new one.

    It has the form of the other tokens of the hub, so that it is masked where an agent prints it.
    """
    text = f"{session}#{revoked}" if revoked else session
    name = hashlib.sha256(f"cli {session}".encode()).hexdigest()[:12]
    return f"qd_{name}_{hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()}"


def is_token(given: str, wanted: str) -> bool:
    """Whether a CLI came with this token. Those of 0.1.0 are its last part, and still count."""
    session, dot, token = wanted.rpartition(".")
    older = session + dot + token.rpartition("_")[2]
    same = hmac.compare_digest(given.encode(), wanted.encode())
    return hmac.compare_digest(given.encode(), older.encode()) or same


def root_token(secret: bytes, session: str, revoked: int = 0) -> str:
    """The token with which the CLI of this session comes back to `/`: it says which one it is."""
    return f"{session}.{cli_token(secret, session, revoked)}"


class CliTokens:
    """The tokens of one hub. Without a file they are kept in memory."""

    def __init__(
        self, secret: bytes, path: Path | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.secret = secret
        self._path = path
        self._clock = clock
        self._known: dict[str, UsedToken] = {}
        self._stamp: tuple[int, int] | None = None
        self.reload()

    def token(self, session: str) -> str:
        """The token of a session."""
        return cli_token(self.secret, session, self._revoke(session))

    def root_token(self, session: str) -> str:
        """The token with which the CLI of a session comes back to `/`."""
        return root_token(self.secret, session, self._revoke(session))

    def _revoke(self, session: str) -> int:
        known = self._known.get(session)
        return known.revoked if known else 0

    def used_tokens(self) -> dict[str, float]:
        """The sessions whose token was used, since when."""
        return {name: each.since for name, each in self._known.items() if each.since}

    def note_used(self, session: str) -> None:
        """A CLI came with the token of this session. Writes a file the first time."""
        known = self._known.get(session, UsedToken())
        if not known.since:
            self._change(lambda known: {session: replace(known, since=self._clock())}, session)

    def revoke(self, session: str) -> None:
        """Take the token of a session back. Writes a file."""
        self._change(lambda known: {session: UsedToken(revoked=known.revoked + 1)}, session)

    def reload(self) -> list[str]:
        """Read what another process has changed; gives the sessions whose tokens are other ones."""
        if self._path is None or (stamp := _stamp(self._path)) == self._stamp:
            return []
        before = self._known
        self._known = self._read(self._path)
        self._stamp = stamp
        return [
            name
            for name, each in self._known.items()
            if each.revoked != before.get(name, UsedToken()).revoked
        ]

    def _change(self, change: Callable[[UsedToken], dict[str, UsedToken]], session: str) -> None:
        if self._path is None:
            self._known |= change(self._known.get(session, UsedToken()))
            return
        with _hold_lock(self._path.with_suffix(".lock")):
            known = self._read(self._path)
            known |= change(known.get(session, UsedToken()))
            plain = [name for name, each in known.items() if not each.revoked]
            for name in plain[: max(0, len(plain) - MOST_USED)]:
                del known[name]
            replace_file(self._path, msgspec.json.encode(_File(tokens=known)))
            self._known, self._stamp = known, _stamp(self._path)

    def _read(self, path: Path) -> dict[str, UsedToken]:
        try:
            return msgspec.json.decode(path.read_bytes(), type=_File).tokens
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            log.error("%s: no CLI can dial the hub, as nobody knows which may: %s", path, error)
            self.secret = os.urandom(32)
            return {}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
