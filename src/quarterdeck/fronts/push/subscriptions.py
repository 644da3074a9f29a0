"""The files of push: the hub's key and the subscriptions. Both are private.

Blocking, and safe to use from several threads. Only the hub writes these files. A damaged one is
moved aside: a browser that opens the web app subscribes again by itself. The cryptography is loaded
when it is needed, which takes 0.1 s: most hubs have no subscription.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from quarterdeck.domain.addresses import is_public_name
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.runtime.files import replace_file

if TYPE_CHECKING:
    from quarterdeck.fronts.push.encryption import HubKey

log = logging.getLogger(__name__)

KEY_FILE, SUBSCRIPTIONS_FILE = "push.key", "push.json"
MOST, MOST_OF_ONE = 200, 8
"""The most subscriptions, in all and per grant: a token may be used by several browsers."""
LONGEST_ENDPOINT = 2048
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class PushKind(StrEnum):
    """What a notification is about."""

    QUESTION = "question"
    FINISHED = "finished"
    FAILED = "failed"
    BUDGET = "budget"


class Subscription(Value):
    """A subscribed browser. The endpoint is a secret: anyone who has it can send there."""

    grant: str
    """The grant that created it; the subscription ends with the grant."""
    endpoint: str
    p256dh: str
    auth: str
    kinds: tuple[PushKind, ...] = (PushKind.QUESTION,)
    """What the browser is told of."""
    buttons: bool = False
    """Questions have buttons that answer them, also on a locked screen."""

    @property
    def origin(self) -> str:
        """The push service. It is no secret, and may be logged."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc}"


class SubscriptionStore:
    """The two files, held in memory after reading: they are small."""

    def __init__(self, folder: Path, *, loopback: bool = False) -> None:
        """`loopback` allows endpoints on this machine, without TLS, for tests."""
        self._folder = folder
        self._loopback = loopback
        self._mutex = threading.Lock()
        self._key: HubKey | None = None
        self._secret: bytes | None = None
        self._subscriptions = self._read()

    @property
    def subscriptions(self) -> Sequence[Subscription]:
        """All subscriptions, oldest first."""
        return self._subscriptions

    @property
    def write_lock(self) -> Callable[[], threading.Lock]:
        """The lock that is held while the files are written."""
        return lambda: self._mutex

    def note_change(self, name: str) -> None:
        """Another hub has changed a file. The caller has the lock."""
        if name == SUBSCRIPTIONS_FILE:
            self._subscriptions = self._read()
        elif name == KEY_FILE:
            self._key = self._secret = None

    def key(self) -> HubKey:
        """The hub's key; created if it is missing."""
        with self._mutex:
            if self._key is None:
                self._key = self._ensure_key()
            return self._key

    def secret(self) -> bytes:
        """What seals the answers of notifications: derived from the key, which all hubs share."""
        with self._mutex:
            if self._secret is None:
                if self._key is None:
                    self._key = self._ensure_key()
                key = (self._folder / KEY_FILE).read_bytes()
                self._secret = hashlib.sha256(b"push answers\n" + key).digest()
            return self._secret

    def add(self, new: Subscription) -> None:
        """Add a subscription; it replaces an earlier one with the same endpoint.

        Raises `UsageError` for an invalid one, and `Conflict` when there are too many.
        """
        self._check(new)
        with self._mutex:
            rest = [each for each in self._subscriptions if each.endpoint != new.endpoint]
            own = [each for each in rest if each.grant == new.grant]
            surplus = own[: max(0, len(own) + 1 - MOST_OF_ONE)]
            rest = [each for each in rest if each not in surplus]
            if len(rest) >= MOST:
                raise Conflict("too_many_subscriptions", f"{MOST} browsers are subscribed already")
            self._write((*rest, new))

    def remove(self, endpoint: str) -> None:
        """Remove a subscription; a missing one is ignored."""
        self._keep(tuple(each for each in self._subscriptions if each.endpoint != endpoint))

    def keep_only(self, grants: Collection[str]) -> None:
        """Remove the subscriptions whose grants were revoked or have expired."""
        self._keep(tuple(each for each in self._subscriptions if each.grant in grants))

    def _keep(self, kept: tuple[Subscription, ...]) -> None:
        with self._mutex:
            # Subscriptions that were added meanwhile stay.
            gone = {each.endpoint for each in self._subscriptions} - {e.endpoint for e in kept}
            if gone:
                self._write(tuple(e for e in self._subscriptions if e.endpoint not in gone))

    def _write(self, subscriptions: tuple[Subscription, ...]) -> None:
        data = msgspec.json.format(msgspec.json.encode(subscriptions), indent=2)
        replace_file(self._folder / SUBSCRIPTIONS_FILE, data)
        self._subscriptions = subscriptions

    def _read(self) -> tuple[Subscription, ...]:
        file = self._folder / SUBSCRIPTIONS_FILE
        try:
            found = msgspec.json.decode(file.read_bytes(), type=tuple[Subscription, ...])
            for each in found:
                self._check(each)
        except FileNotFoundError:
            return ()
        except (msgspec.DecodeError, UsageError) as error:
            _put_aside(file, error)
            return ()
        return found

    def _ensure_key(self) -> HubKey:
        from quarterdeck.fronts.push.encryption import HubKey

        file = self._folder / KEY_FILE
        try:
            return HubKey(file.read_bytes())
        except FileNotFoundError:
            pass
        except (ValueError, TypeError) as error:  # the second: with a password
            _put_aside(file, error)
        made = HubKey.new()
        replace_file(file, made)
        return HubKey(made)

    def _check(self, new: Subscription) -> None:
        from quarterdeck.fronts.push.encryption import check_keys

        check_keys(new.p256dh, new.auth)
        endpoint = new.endpoint
        try:
            parts = urlsplit(endpoint)
            _ = parts.port  # raises for an invalid port
            right = parts.scheme == "https" and is_public_name(parts.hostname or "")
            right = right and parts.port in {None, 443}
            if self._loopback:
                right = right or parts.hostname in _LOOPBACK
        except ValueError:
            right, parts = False, urlsplit("")
        plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint
        if not right or not plain or parts.username is not None:
            raise UsageError("endpoint: the https URL of a public push service is required")
        if len(endpoint) > LONGEST_ENDPOINT:
            raise UsageError(f"endpoint: longer than {LONGEST_ENDPOINT} characters")


def _put_aside(file: Path, error: Exception) -> None:
    aside = file.with_name(file.name + ".damaged")
    log.error("%s is damaged (%s); it is moved aside as %s", file, error, aside.name)
    file.replace(aside)
