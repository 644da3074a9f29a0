"""The checks of a request: its secret or signature, its age, its rate.

Pure, but for `read_secrets`. Below `endpoint`. All comparisons take the same time for right and
wrong secrets.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import deque
from pathlib import Path

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.schedules import InboundHook
from quarterdeck.runtime.webhook_signature import is_signed, read_keys

WINDOW_SECONDS = 300
"""How far the time of a signed request may be from ours."""
SHORTEST_TOKEN = 24
LARGEST_FILE = 4096
MOST_TOKENS = 4
LONGEST_HEADER = 1024
MINUTE = 60.0
GITHUB_PREFIX = "sha256="
PING = "ping"
"""The event by which GitHub tries a new webhook."""


class Given(Value):
    """What a request brought. A header that is missing, or is there twice, is empty."""

    authorization: str = ""
    idempotency_key: str = ""
    webhook_id: str = ""
    webhook_timestamp: str = ""
    webhook_signature: str = ""
    hub_signature: str = ""
    github_event: str = ""
    body: bytes = b""


def read_secrets(hook: InboundHook) -> tuple[bytes, ...]:
    """The keys or tokens of a webhook, from its file. Blocks.

    Raises `UsageError`, which never contains anything of the file.
    """
    if hook.auth == "hmac":
        return read_keys(hook.secret_file)
    place = Path(hook.secret_file)
    try:
        with place.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"secret file {place}: {error.strerror}") from error
    tokens = tuple(data.split())
    if len(data) > LARGEST_FILE or not 0 < len(tokens) <= MOST_TOKENS:
        raise UsageError(f"secret file {place}: 1 to {MOST_TOKENS} tokens required, one per line")
    if any(len(token) < SHORTEST_TOKEN or not token.isascii() for token in tokens):
        raise UsageError(
            f"secret file {place}: a token has {SHORTEST_TOKEN} or more ASCII characters"
        )
    return tokens


def is_authentic(hook: InboundHook, given: Given, secrets: tuple[bytes, ...], now: float) -> bool:
    """Whether a request comes from who has the secret, and is not an old one."""
    if hook.auth == "bearer":
        return _has_token(given.authorization, secrets)
    if hook.auth == "github":
        return _is_signed_body(given.body, given.hub_signature, secrets)
    if not given.webhook_id or not _is_recent(given.webhook_timestamp, now):
        return False
    seconds = int(given.webhook_timestamp)
    return is_signed(given.webhook_id, seconds, given.body, given.webhook_signature, secrets)


def key_of(hook: InboundHook, given: Given) -> str | None:
    """What makes the request the same as another one; None if it said nothing about that.

    With GitHub's scheme only the body is signed: a sender that repeats a request can give it
    another id. So it is the body itself.
    """
    match hook.auth:
        case "hmac":
            return given.webhook_id or None
        case "bearer":
            return given.idempotency_key or None
        case "github":
            return f"body-{hashlib.sha256(given.body).hexdigest()}"


def is_ping(hook: InboundHook, given: Given) -> bool:
    """Whether GitHub only tries the address."""
    return hook.auth == "github" and given.github_event == PING


def _has_token(authorization: str, secrets: tuple[bytes, ...]) -> bool:
    scheme, _, token = authorization.partition(" ")
    given = hashlib.sha256(token.strip().encode()).digest()
    found = False
    for secret in secrets:
        found |= hmac.compare_digest(hashlib.sha256(secret).digest(), given)
    return found and scheme.lower() == "bearer"


def _is_signed_body(body: bytes, given: str, secrets: tuple[bytes, ...]) -> bool:
    """Whether the signature is right, as GitHub and others make it. It takes as long for a wrong
    one.
    """
    found = False
    for secret in secrets:
        right = GITHUB_PREFIX + hmac.new(secret, body, hashlib.sha256).hexdigest()
        found |= hmac.compare_digest(right.encode(), given.encode())
    return found


def _is_recent(timestamp: str, now: float) -> bool:
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        return False
    return abs(int(timestamp) - now) <= WINDOW_SECONDS


class Rate:
    """How many requests there were within a minute."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def wait(self, most: int, now: float) -> float:
        """Count a request; gives the seconds to wait if it is one too many, else 0."""
        times = self._times
        while times and not 0 <= now - times[0] < MINUTE:
            times.popleft()
        if len(times) >= most:
            return MINUTE - (now - times[0])
        times.append(now)
        return 0.0
